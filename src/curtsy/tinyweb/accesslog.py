"""The server's access log: one line of tab-separated fields per request, written when the request has ended.

    host  method  path  status  start_us  end_us  connection  bytes  hold_until_us

Times are microseconds of CLOCK_REALTIME. `start` is the arrival of the request's head. `end` is the time when the last
byte was written to the socket or the client's close arrived, whichever came first. If the server was not scheduled and
reads late, the kernel's arrival time is used (on Linux, exact to 10 ms). `status` is 0 if no status line was sent.
`hold_until_us` is the end of the pause that the answer asked for (Retry-After), else 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FLUSH_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One request."""

    host: str
    method: str
    path: str
    status: int
    start_us: int
    end_us: int
    connection: int
    bytes: int
    hold_until_us: int = 0

    @property
    def name(self) -> str:
        """The host without its port."""
        return self.host.rpartition(":")[0] if self.host.rpartition(":")[2].isdigit() else self.host


class AccessLog:
    """Collects lines in memory; `flush` passes them to the kernel, so that a killed process cannot lose them."""

    def __init__(self, path: Path | None) -> None:
        self.lines: list[tuple[str, str, str, int, int, int, int, int, int]] = []
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if path else None

    def flush(self) -> None:
        if not self.lines:
            return
        lines, self.lines = self.lines, []
        if self._file is not None:
            data = "".join(["\t".join(map(str, line)) + "\n" for line in lines]).encode("utf-8", "replace")
            while data:
                data = data[os.write(self._file, data) :]

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read(path: Path | str) -> Iterator[Line]:
    """Yield the lines of a log, in the order in which requests ended; an incomplete last line is omitted."""
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 9 and line.endswith("\n"):
                host, method, target = fields[:3]
                status, start, end, connection, size, hold = map(int, fields[3:])
                yield Line(
                    host=host, method=method, path=target, status=status, start_us=start, end_us=end,
                    connection=connection, bytes=size, hold_until_us=hold,
                )  # fmt: skip
