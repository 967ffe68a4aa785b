from enum import StrEnum


class Reclaim(StrEnum):
    ANY = "any"
    OFF = "off"

    def __str__(self) -> str:
        return str(self.value)
