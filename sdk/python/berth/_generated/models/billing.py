from enum import StrEnum


class Billing(StrEnum):
    MAX_TRES = "max_tres"
    MAX_TRES_GRES = "max_tres_gres"
    SUM = "sum"

    def __str__(self) -> str:
        return str(self.value)
