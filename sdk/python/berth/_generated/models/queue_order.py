from enum import StrEnum


class QueueOrder(StrEnum):
    SUBMISSION = "submission"
    URGENCY = "urgency"

    def __str__(self) -> str:
        return str(self.value)
