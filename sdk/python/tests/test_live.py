"""The SDK against a live service that has at least one node; BERTH_SERVER and BERTH_TOKEN say where."""

import os
import subprocess
import sys
import unittest
import uuid
from pathlib import Path

import berth

TIMEOUT_SECONDS = 60


@unittest.skipUnless(os.environ.get("BERTH_SERVER"), "BERTH_SERVER is not set")
class LiveTest(unittest.TestCase):
    def setUp(self) -> None:
        self.client = berth.Client()
        self.addCleanup(self.client.close)
        self.jobs = self.client.jobs
        self.name = f"sdk-{uuid.uuid4().hex[:12]}"

    def submit(self, command: list[str], **fields: object) -> int:
        """Submits a command; the job is cancelled, if need be, when the test ends."""
        job_id = self.jobs.submit({"name": self.name, "command": command, **fields}).job_id
        self.addCleanup(self.jobs.cancel, job_id, grace_seconds=0)
        return job_id

    def first_output(self, job_id: int) -> None:
        """Waits until the job has written something, which a job that runs does."""
        next(event for event in self.jobs.follow(job_id) if event["type"] == "output")

    def test_a_script_runs_and_its_output_is_read(self) -> None:
        submitted = self.jobs.submit(f"#!/bin/sh\n#SBATCH --job-name={self.name}\necho out; exit 3\n")
        job = self.jobs.wait(submitted.job_id, timeout=TIMEOUT_SECONDS)
        self.assertEqual(job.state, berth.JobState.FAILED)
        self.assertEqual((job.exit_code, job.name), (3, self.name))
        self.assertEqual(self.jobs.logs(job.job_id), "out\n")
        self.assertEqual(self.jobs.logs(job.job_id, tail=3), "ut\n")

    def test_each_task_has_output_of_its_own(self) -> None:
        job_id = self.submit(["sh", "-c", "echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2"], resources={"tasks": 2})
        self.jobs.wait(job_id, timeout=TIMEOUT_SECONDS)
        self.assertEqual(self.jobs.logs(job_id, task=1, stream="stdout"), "out 1\n")
        self.assertEqual(self.jobs.logs(job_id, task=1, stream="stderr"), "err 1\n")

    def test_a_spec_in_short_forms_is_understood(self) -> None:
        job_id = self.submit(["echo", "hi"], resources={"memory_per_node_bytes": "64MiB"}, labels={"made_by": "sdk"})
        job = self.jobs.wait(job_id, timeout=TIMEOUT_SECONDS)
        self.assertEqual(job.state, "completed")
        self.assertEqual(job.spec.resources.memory_per_node_bytes, 64 << 20)
        self.assertEqual(job.labels["made_by"], "sdk")
        self.assertEqual(job.end_time.utcoffset().total_seconds(), 0)

    def test_a_misspelt_field_is_refused_with_help(self) -> None:
        with self.assertRaises(berth.ApiError) as raised:
            self.jobs.submit({"command": ["true"], "resources": {"gpus": "many"}})
        error = raised.exception
        self.assertEqual((error.status, error.code, error.field), (422, "invalid_field", "resources.gpus"))
        self.assertIn("many", error.detail)
        self.assertTrue(error.help)
        self.assertIn(error.help, str(error))
        with self.assertRaises(berth.ApiError) as raised:
            self.jobs.submit({"comand": ["true"]})
        self.assertIn("comand", str(raised.exception))

    def test_an_unknown_job_is_not_found(self) -> None:
        for act in (self.jobs.get, self.jobs.logs, self.jobs.cancel, lambda job: next(self.jobs.follow(job))):
            with self.assertRaises(berth.ApiError) as raised:
                act(2**40)
            self.assertEqual((raised.exception.status, raised.exception.code), (404, "not_found"))

    def test_a_wrong_token_is_refused(self) -> None:
        with berth.Client(token="wrong") as client, self.assertRaises(berth.ApiError) as raised:
            next(client.jobs.list())
        self.assertEqual(raised.exception.status, 401)

    def test_the_same_key_makes_one_job(self) -> None:
        spec = {"name": self.name, "command": ["true"], "hold": True}
        first, second = (self.jobs.submit(spec, idempotency_key=self.name) for _ in range(2))
        self.addCleanup(self.jobs.cancel, first.job_id)
        self.assertEqual(first.job_id, second.job_id)
        self.assertEqual(len(list(self.jobs.list(name=self.name))), 1)

    def test_a_list_goes_through_all_pages(self) -> None:
        expected = [self.submit(["true"], hold=True) for _ in range(5)]
        found = self.jobs.list(name=[self.name], state=["pending", "running"], order_by="job_id", page_size=2)
        self.assertEqual([job.job_id for job in found], expected)
        self.assertEqual(list(self.jobs.list(name=self.name, state="running")), [])

    def test_output_is_followed_to_the_end(self) -> None:
        job_id = self.submit(["sh", "-c", "for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 4"])
        events = list(self.jobs.follow(job_id))
        self.assertEqual("".join(event["text"] for event in events if event["type"] == "output"), "line 1\nline 2\nline 3\n")
        self.assertEqual({"type": "end", "state": "failed", "exit_code": 4}.items() - events[-1].items(), set())

    def test_a_running_job_is_cancelled_and_a_wait_for_it_has_a_limit(self) -> None:
        job_id = self.submit(["sh", "-c", "echo up; exec sleep 600"])
        self.first_output(job_id)
        with self.assertRaises(TimeoutError):
            self.jobs.wait(job_id, timeout=0.3)
        self.jobs.cancel(job_id, grace_seconds=1)
        self.assertEqual(self.jobs.wait(job_id, timeout=TIMEOUT_SECONDS).state, berth.JobState.CANCELLED)

    def test_a_job_is_held_explained_and_released(self) -> None:
        job_id = self.submit(["true"], begin="2999-01-01T00:00:00Z")
        self.assertEqual(self.jobs.hold(job_id).hold, "user")
        explanation = self.jobs.explain(job_id)
        self.assertEqual((explanation.job_id, explanation.state), (job_id, berth.JobState.PENDING))
        self.assertTrue(explanation.summary)
        self.assertFalse(self.jobs.release(job_id).hold)

    def test_a_running_job_is_put_back_into_the_queue(self) -> None:
        job_id = self.submit(["sh", "-c", "echo up; exec sleep 600"])
        self.first_output(job_id)
        self.jobs.requeue(job_id, hold=True)
        end = list(self.jobs.follow(job_id))[-1]
        self.assertEqual((end["type"], end["state"]), ("end", "pending"))
        job = self.jobs.get(job_id)
        self.assertEqual((job.restarts, job.hold), (1, "user"))

    def test_nodes_are_listed(self) -> None:
        nodes = list(self.client.nodes.list(page_size=1))
        self.assertTrue(nodes)
        self.assertEqual(len({node.name for node in nodes}), len(nodes))
        self.assertGreater(nodes[0].inventory.memory_bytes, 0)

    def test_the_example_prints_what_the_job_wrote(self) -> None:
        root = Path(__file__).parents[1]
        paths = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, root / "examples/submit_and_wait.py"],
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^Hello from \S+, job \d+\n$")
