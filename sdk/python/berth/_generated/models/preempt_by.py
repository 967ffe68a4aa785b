from enum import StrEnum


class PreemptBy(StrEnum):
    OFF = "off"
    PARTITION_TIER = "partition_tier"
    QOS = "qos"

    def __str__(self) -> str:
        return str(self.value)
