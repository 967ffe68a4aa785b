from enum import StrEnum


class Network(StrEnum):
    HOST = "host"
    NONE = "none"

    def __str__(self) -> str:
        return str(self.value)
