from enum import StrEnum


class LogStream(StrEnum):
    STDERR = "stderr"
    STDIN = "stdin"
    STDOUT = "stdout"

    def __str__(self) -> str:
        return str(self.value)
