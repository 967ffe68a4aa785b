from enum import StrEnum


class FairShareRule(StrEnum):
    CLASSIC = "classic"
    FAIR_TREE = "fair_tree"

    def __str__(self) -> str:
        return str(self.value)
