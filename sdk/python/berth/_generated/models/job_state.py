from enum import StrEnum


class JobState(StrEnum):
    ALLOCATED = "allocated"
    BOOT_FAIL = "boot_fail"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    COMPLETING = "completing"
    DEADLINE = "deadline"
    FAILED = "failed"
    LAUNCH_FAILED = "launch_failed"
    NODE_FAIL = "node_fail"
    OUT_OF_MEMORY = "out_of_memory"
    PENDING = "pending"
    PREEMPTED = "preempted"
    RUNNING = "running"
    SUSPENDED = "suspended"
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return str(self.value)
