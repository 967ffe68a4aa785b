from enum import StrEnum


class ImpossibleLimit(StrEnum):
    REFUSE = "refuse"
    WAIT = "wait"

    def __str__(self) -> str:
        return str(self.value)
