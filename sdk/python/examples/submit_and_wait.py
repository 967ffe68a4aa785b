"""Submits a job, waits for its end and prints its output. BERTH_SERVER says where, BERTH_TOKEN or BERTH_TOKEN_FILE as whom."""

import sys

import berth

SCRIPT = """#!/bin/sh
#SBATCH --job-name=hello --time=5
echo "Hello from $(hostname), job $SLURM_JOB_ID"
"""


def main() -> int:
    with berth.Client() as client:
        submitted = client.jobs.submit(SCRIPT)
        print(f"Submitted job {submitted.job_id}", file=sys.stderr)
        job = client.jobs.wait(submitted.job_id, timeout=300)
        print(client.jobs.logs(job.job_id), end="")
        print(f"Job {job.job_id} is {job.state}", file=sys.stderr)
        return 0 if job.state == berth.JobState.COMPLETED else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (berth.ApiError, berth.Unreachable, TimeoutError) as error:
        sys.exit(str(error))
