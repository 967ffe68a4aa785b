"""`python -m unittest` in sdk/python runs all; with BERTH_SERVER and BERTH_TOKEN set, also the tests against a live service."""
