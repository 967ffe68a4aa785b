from enum import StrEnum


class PartitionState(StrEnum):
    DOWN = "down"
    DRAIN = "drain"
    INACTIVE = "inactive"
    UP = "up"

    def __str__(self) -> str:
        return str(self.value)
