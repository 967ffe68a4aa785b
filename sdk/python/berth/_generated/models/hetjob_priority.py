from enum import StrEnum


class HetjobPriority(StrEnum):
    AVG = "avg"
    LEADER = "leader"
    MAX = "max"
    MIN = "min"

    def __str__(self) -> str:
        return str(self.value)
