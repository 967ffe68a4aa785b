from enum import StrEnum


class UsageReset(StrEnum):
    DAILY = "daily"
    MONTHLY = "monthly"
    NONE = "none"
    QUARTERLY = "quarterly"
    WEEKLY = "weekly"
    YEARLY = "yearly"

    def __str__(self) -> str:
        return str(self.value)
