from enum import StrEnum


class JobKind(StrEnum):
    BATCH = "batch"
    EXTERNAL = "external"

    def __str__(self) -> str:
        return str(self.value)
