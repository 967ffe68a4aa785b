"""Contains all the data models used in inputs/outputs"""

from .account import Account
from .account_figures import AccountFigures
from .ahead import Ahead
from .array_view import ArrayView
from .association import Association
from .attempt import Attempt
from .cancel_job import CancelJob
from .container_spec import ContainerSpec
from .create_join_token import CreateJoinToken
from .create_simulation import CreateSimulation
from .create_tenant import CreateTenant
from .decision import Decision
from .drain_node import DrainNode
from .dry_run_answer import DryRunAnswer
from .explanation import Explanation
from .fault import Fault
from .gpu import Gpu
from .gpus import Gpus
from .hold import Hold
from .inventory import Inventory
from .inventory_facts import InventoryFacts
from .job import Job
from .job_detail import JobDetail
from .job_event import JobEvent
from .job_kind import JobKind
from .job_labels import JobLabels
from .job_spec import JobSpec
from .job_spec_environment import JobSpecEnvironment
from .job_spec_labels import JobSpecLabels
from .job_state import JobState
from .join_token import JoinToken
from .log_stream import LogStream
from .mount_spec import MountSpec
from .named_policy import NamedPolicy
from .network import Network
from .node import Node
from .node_allocation import NodeAllocation
from .node_state import NodeState
from .numa_node import NumaNode
from .open_mode import OpenMode
from .page_account import PageAccount
from .page_association import PageAssociation
from .page_attempt import PageAttempt
from .page_job import PageJob
from .page_job_event import PageJobEvent
from .page_join_token import PageJoinToken
from .page_node import PageNode
from .page_partition import PagePartition
from .page_qos import PageQos
from .page_step import PageStep
from .page_tenant import PageTenant
from .page_user import PageUser
from .parsed_job import ParsedJob
from .partition import Partition
from .partition_state import PartitionState
from .planned_start import PlannedStart
from .plots import Plots
from .policy import Policy
from .policy_figures import PolicyFigures
from .priority import Priority
from .priority_factor import PriorityFactor
from .problem import Problem
from .put_account import PutAccount
from .put_association import PutAssociation
from .put_user import PutUser
from .qos import Qos
from .queue_order import QueueOrder
from .queue_policy import QueuePolicy
from .requeue_job import RequeueJob
from .requeue_mode import RequeueMode
from .requeue_spec import RequeueSpec
from .resource_request import ResourceRequest
from .signal_job import SignalJob
from .signal_spec import SignalSpec
from .simulation import Simulation
from .simulation_result import SimulationResult
from .start import Start
from .step import Step
from .submit_many import SubmitMany
from .submitted_job import SubmittedJob
from .submitted_jobs import SubmittedJobs
from .tenant import Tenant
from .update_job import UpdateJob
from .update_node import UpdateNode
from .update_tenant import UpdateTenant
from .user import User
from .verdict import Verdict
from .whoami import Whoami

__all__ = (
    "Account",
    "AccountFigures",
    "Ahead",
    "ArrayView",
    "Association",
    "Attempt",
    "CancelJob",
    "ContainerSpec",
    "CreateJoinToken",
    "CreateSimulation",
    "CreateTenant",
    "Decision",
    "DrainNode",
    "DryRunAnswer",
    "Explanation",
    "Fault",
    "Gpu",
    "Gpus",
    "Hold",
    "Inventory",
    "InventoryFacts",
    "Job",
    "JobDetail",
    "JobEvent",
    "JobKind",
    "JobLabels",
    "JobSpec",
    "JobSpecEnvironment",
    "JobSpecLabels",
    "JobState",
    "JoinToken",
    "LogStream",
    "MountSpec",
    "NamedPolicy",
    "Network",
    "Node",
    "NodeAllocation",
    "NodeState",
    "NumaNode",
    "OpenMode",
    "PageAccount",
    "PageAssociation",
    "PageAttempt",
    "PageJob",
    "PageJobEvent",
    "PageJoinToken",
    "PageNode",
    "PagePartition",
    "PageQos",
    "PageStep",
    "PageTenant",
    "PageUser",
    "ParsedJob",
    "Partition",
    "PartitionState",
    "PlannedStart",
    "Plots",
    "Policy",
    "PolicyFigures",
    "Priority",
    "PriorityFactor",
    "Problem",
    "PutAccount",
    "PutAssociation",
    "PutUser",
    "Qos",
    "QueueOrder",
    "QueuePolicy",
    "RequeueJob",
    "RequeueMode",
    "RequeueSpec",
    "ResourceRequest",
    "SignalJob",
    "SignalSpec",
    "Simulation",
    "SimulationResult",
    "Start",
    "Step",
    "SubmitMany",
    "SubmittedJob",
    "SubmittedJobs",
    "Tenant",
    "UpdateJob",
    "UpdateNode",
    "UpdateTenant",
    "User",
    "Verdict",
    "Whoami",
)
