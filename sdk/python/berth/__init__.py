"""Client of Berth, Slurm's scheduling policy as a cloud service."""

from ._generated.models import Explanation, Job, JobDetail, JobSpec, JobState, LogStream, Node, NodeState, SubmittedJob
from ._generated.types import UNSET
from .client import Client
from .errors import ApiError, Unreachable
from .jobs import ENDED, Jobs
from .nodes import Nodes

__all__ = [
    "ENDED",
    "UNSET",
    "ApiError",
    "Client",
    "Explanation",
    "Job",
    "JobDetail",
    "JobSpec",
    "JobState",
    "Jobs",
    "LogStream",
    "Node",
    "NodeState",
    "Nodes",
    "SubmittedJob",
    "Unreachable",
]
