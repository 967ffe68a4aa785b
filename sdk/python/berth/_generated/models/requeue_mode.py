from enum import StrEnum


class RequeueMode(StrEnum):
    EXPEDITE = "expedite"
    NEVER = "never"
    REQUEUE = "requeue"

    def __str__(self) -> str:
        return str(self.value)
