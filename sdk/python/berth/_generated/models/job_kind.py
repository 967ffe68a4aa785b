from enum import StrEnum


class JobKind(StrEnum):
    BATCH = "batch"
    COMPONENT = "component"
    EXTERNAL = "external"

    def __str__(self) -> str:
        return str(self.value)
