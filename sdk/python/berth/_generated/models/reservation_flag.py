from enum import StrEnum


class ReservationFlag(StrEnum):
    DAILY = "daily"
    FLEX = "flex"
    HOURLY = "hourly"
    IGNORE_JOBS = "ignore_jobs"
    MAGNETIC = "magnetic"
    MAINT = "maint"
    NO_HOLD_JOBS_AFTER_END = "no_hold_jobs_after_end"
    OVERLAP = "overlap"
    PART_NODES = "part_nodes"
    REPLACE = "replace"
    REPLACE_DOWN = "replace_down"
    STATIC_ALLOC = "static_alloc"
    WEEKDAY = "weekday"
    WEEKEND = "weekend"
    WEEKLY = "weekly"

    def __str__(self) -> str:
        return str(self.value)
