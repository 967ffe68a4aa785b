from enum import StrEnum


class PreemptMode(StrEnum):
    CANCEL = "cancel"
    OFF = "off"
    REQUEUE = "requeue"
    SUSPEND = "suspend"

    def __str__(self) -> str:
        return str(self.value)
