from enum import StrEnum


class NodeState(StrEnum):
    ALLOCATED = "allocated"
    DOWN = "down"
    FUTURE = "future"
    IDLE = "idle"
    MIXED = "mixed"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)
