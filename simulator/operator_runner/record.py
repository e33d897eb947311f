"""The file by which a running operator host is known."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

# The kernel counts from its boot, and when that was moves a little when the clock is set right.
CLOCK_DRIFT_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class HostRecord:
    """Which process is the host, the API server it works for, and whether it is ready.

    A pid alone proves nothing: after the host's death another process may get it. `started` is when the
    process with this pid began, in seconds since the epoch.
    """

    pid: int
    started: float
    server: str
    ready: bool

    @classmethod
    def of(cls, process: psutil.Process, server: str, *, ready: bool) -> "HostRecord":
        """The record of a process that runs."""
        return cls(pid=process.pid, started=process.create_time(), server=server, ready=ready)

    def process(self) -> psutil.Process | None:
        """The process, if it still is the one that was recorded."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < CLOCK_DRIFT_SECONDS
            ended = process.status() == psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return None
        return process if same and not ended else None

    def write(self, path: Path) -> None:
        """Write the record in one step: a reader sees all of it or nothing."""
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(path)


def read_record(path: Path) -> HostRecord | None:
    """The record at `path`; None where there is none or it makes no sense."""
    try:
        fields = json.loads(path.read_text())
        return HostRecord(
            pid=int(fields["pid"]),
            started=float(fields["started"]),
            server=str(fields["server"]),
            ready=bool(fields["ready"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
