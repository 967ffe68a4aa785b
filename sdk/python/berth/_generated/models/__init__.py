"""Contains all the data models used in inputs/outputs"""

from .account import Account
from .account_figures import AccountFigures
from .accounts_update_body import AccountsUpdateBody
from .advice import Advice
from .ahead import Ahead
from .alternative import Alternative
from .array_view import ArrayView
from .association import Association
from .associations_update_body import AssociationsUpdateBody
from .attempt import Attempt
from .billing import Billing
from .cancel_job import CancelJob
from .component_spec import ComponentSpec
from .component_view import ComponentView
from .container_spec import ContainerSpec
from .create_join_token import CreateJoinToken
from .create_simulation import CreateSimulation
from .create_tenant import CreateTenant
from .decision import Decision
from .declare_node import DeclareNode
from .down_node import DownNode
from .drain_node import DrainNode
from .dry_run_answer import DryRunAnswer
from .explanation import Explanation
from .fair_share_rule import FairShareRule
from .fairshare_type_1 import FairshareType1
from .fault import Fault
from .gpu import Gpu
from .gpus import Gpus
from .hetjob_priority import HetjobPriority
from .hold import Hold
from .impossible_limit import ImpossibleLimit
from .inventory import Inventory
from .inventory_facts import InventoryFacts
from .inventory_gpu_shares import InventoryGpuShares
from .inventory_gpu_shares_additional_property import (
    InventoryGpuSharesAdditionalProperty,
)
from .job import Job
from .job_detail import JobDetail
from .job_event import JobEvent
from .job_kind import JobKind
from .job_labels import JobLabels
from .job_priority import JobPriority
from .job_spec import JobSpec
from .job_spec_environment import JobSpecEnvironment
from .job_spec_labels import JobSpecLabels
from .job_state import JobState
from .join_token import JoinToken
from .license_ import License
from .license_state import LicenseState
from .licenses_update_body import LicensesUpdateBody
from .limits import Limits
from .limits_grp_tres import LimitsGrpTres
from .limits_grp_tres_minutes import LimitsGrpTresMinutes
from .limits_grp_tres_run_minutes import LimitsGrpTresRunMinutes
from .limits_max_tres_minutes_per_job import LimitsMaxTresMinutesPerJob
from .limits_max_tres_per_job import LimitsMaxTresPerJob
from .limits_max_tres_per_node import LimitsMaxTresPerNode
from .log_stream import LogStream
from .mount_spec import MountSpec
from .named_policy import NamedPolicy
from .network import Network
from .node import Node
from .node_allocated_shares import NodeAllocatedShares
from .node_allocation import NodeAllocation
from .node_state import NodeState
from .numa_node import NumaNode
from .open_mode import OpenMode
from .page_account import PageAccount
from .page_association import PageAssociation
from .page_attempt import PageAttempt
from .page_job import PageJob
from .page_job_event import PageJobEvent
from .page_job_priority import PageJobPriority
from .page_join_token import PageJoinToken
from .page_license_state import PageLicenseState
from .page_node import PageNode
from .page_partition import PagePartition
from .page_qos import PageQos
from .page_reservation import PageReservation
from .page_step import PageStep
from .page_tenant import PageTenant
from .page_user import PageUser
from .parsed_job import ParsedJob
from .partition import Partition
from .partition_billing_weights import PartitionBillingWeights
from .partition_state import PartitionState
from .partitions_update_body import PartitionsUpdateBody
from .planned_start import PlannedStart
from .plots import Plots
from .policy import Policy
from .policy_figures import PolicyFigures
from .policy_update_body import PolicyUpdateBody
from .policy_weight_tres import PolicyWeightTres
from .power_policy import PowerPolicy
from .preempt_by import PreemptBy
from .preempt_mode import PreemptMode
from .preempted import Preempted
from .preempted_attempt import PreemptedAttempt
from .priority import Priority
from .priority_factor import PriorityFactor
from .problem import Problem
from .put_account import PutAccount
from .put_association import PutAssociation
from .put_user import PutUser
from .qos import Qos
from .qos_max_tres_per_account import QosMaxTresPerAccount
from .qos_max_tres_per_user import QosMaxTresPerUser
from .qos_max_tres_run_minutes_per_account import QosMaxTresRunMinutesPerAccount
from .qos_max_tres_run_minutes_per_user import QosMaxTresRunMinutesPerUser
from .qos_min_tres_per_job import QosMinTresPerJob
from .qos_update_body import QosUpdateBody
from .queue_order import QueueOrder
from .queue_policy import QueuePolicy
from .quota import Quota
from .quota_borrowing_limit import QuotaBorrowingLimit
from .quota_guaranteed import QuotaGuaranteed
from .quota_lending_limit import QuotaLendingLimit
from .reboot_node import RebootNode
from .reclaim import Reclaim
from .requeue_job import RequeueJob
from .requeue_mode import RequeueMode
from .requeue_spec import RequeueSpec
from .reservation import Reservation
from .reservation_flag import ReservationFlag
from .reservation_spec import ReservationSpec
from .reservation_spec_tres import ReservationSpecTres
from .reservations_update_body import ReservationsUpdateBody
from .reserved_part import ReservedPart
from .reserved_share import ReservedShare
from .reserved_share_gpus import ReservedShareGpus
from .resource_request import ResourceRequest
from .share import Share
from .shares import Shares
from .signal_job import SignalJob
from .signal_spec import SignalSpec
from .simulation import Simulation
from .simulation_result import SimulationResult
from .start import Start
from .step import Step
from .submit_many import SubmitMany
from .submitted_job import SubmittedJob
from .submitted_jobs import SubmittedJobs
from .suspension import Suspension
from .tenant import Tenant
from .terms import Terms
from .update_job import UpdateJob
from .update_job_labels_type_0 import UpdateJobLabelsType0
from .update_node import UpdateNode
from .update_tenant import UpdateTenant
from .update_tenant_terms_type_0 import UpdateTenantTermsType0
from .usage_reset import UsageReset
from .user import User
from .verdict import Verdict
from .victim import Victim
from .whoami import Whoami
from .window import Window

__all__ = (
    "Account",
    "AccountFigures",
    "AccountsUpdateBody",
    "Advice",
    "Ahead",
    "Alternative",
    "ArrayView",
    "Association",
    "AssociationsUpdateBody",
    "Attempt",
    "Billing",
    "CancelJob",
    "ComponentSpec",
    "ComponentView",
    "ContainerSpec",
    "CreateJoinToken",
    "CreateSimulation",
    "CreateTenant",
    "Decision",
    "DeclareNode",
    "DownNode",
    "DrainNode",
    "DryRunAnswer",
    "Explanation",
    "FairShareRule",
    "FairshareType1",
    "Fault",
    "Gpu",
    "Gpus",
    "HetjobPriority",
    "Hold",
    "ImpossibleLimit",
    "Inventory",
    "InventoryFacts",
    "InventoryGpuShares",
    "InventoryGpuSharesAdditionalProperty",
    "Job",
    "JobDetail",
    "JobEvent",
    "JobKind",
    "JobLabels",
    "JobPriority",
    "JobSpec",
    "JobSpecEnvironment",
    "JobSpecLabels",
    "JobState",
    "JoinToken",
    "License",
    "LicenseState",
    "LicensesUpdateBody",
    "Limits",
    "LimitsGrpTres",
    "LimitsGrpTresMinutes",
    "LimitsGrpTresRunMinutes",
    "LimitsMaxTresMinutesPerJob",
    "LimitsMaxTresPerJob",
    "LimitsMaxTresPerNode",
    "LogStream",
    "MountSpec",
    "NamedPolicy",
    "Network",
    "Node",
    "NodeAllocatedShares",
    "NodeAllocation",
    "NodeState",
    "NumaNode",
    "OpenMode",
    "PageAccount",
    "PageAssociation",
    "PageAttempt",
    "PageJob",
    "PageJobEvent",
    "PageJobPriority",
    "PageJoinToken",
    "PageLicenseState",
    "PageNode",
    "PagePartition",
    "PageQos",
    "PageReservation",
    "PageStep",
    "PageTenant",
    "PageUser",
    "ParsedJob",
    "Partition",
    "PartitionBillingWeights",
    "PartitionState",
    "PartitionsUpdateBody",
    "PlannedStart",
    "Plots",
    "Policy",
    "PolicyFigures",
    "PolicyUpdateBody",
    "PolicyWeightTres",
    "PowerPolicy",
    "PreemptBy",
    "Preempted",
    "PreemptedAttempt",
    "PreemptMode",
    "Priority",
    "PriorityFactor",
    "Problem",
    "PutAccount",
    "PutAssociation",
    "PutUser",
    "Qos",
    "QosMaxTresPerAccount",
    "QosMaxTresPerUser",
    "QosMaxTresRunMinutesPerAccount",
    "QosMaxTresRunMinutesPerUser",
    "QosMinTresPerJob",
    "QosUpdateBody",
    "QueueOrder",
    "QueuePolicy",
    "Quota",
    "QuotaBorrowingLimit",
    "QuotaGuaranteed",
    "QuotaLendingLimit",
    "RebootNode",
    "Reclaim",
    "RequeueJob",
    "RequeueMode",
    "RequeueSpec",
    "Reservation",
    "ReservationFlag",
    "ReservationSpec",
    "ReservationSpecTres",
    "ReservationsUpdateBody",
    "ReservedPart",
    "ReservedShare",
    "ReservedShareGpus",
    "ResourceRequest",
    "Share",
    "Shares",
    "SignalJob",
    "SignalSpec",
    "Simulation",
    "SimulationResult",
    "Start",
    "Step",
    "SubmitMany",
    "SubmittedJob",
    "SubmittedJobs",
    "Suspension",
    "Tenant",
    "Terms",
    "UpdateJob",
    "UpdateJobLabelsType0",
    "UpdateNode",
    "UpdateTenant",
    "UpdateTenantTermsType0",
    "UsageReset",
    "User",
    "Verdict",
    "Victim",
    "Whoami",
    "Window",
)
