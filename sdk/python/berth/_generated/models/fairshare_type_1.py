from enum import StrEnum


class FairshareType1(StrEnum):
    PARENT = "parent"

    def __str__(self) -> str:
        return str(self.value)
