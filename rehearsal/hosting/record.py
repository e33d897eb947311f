"""The file by which a running operator host is known."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, kw_only=True)
class HostRecord:
    """Which process is the host, and the API server it works for.

    A pid alone proves nothing: after the host's death another process may get it. `started` is when the
    process with this pid began, in seconds since the epoch.
    """

    pid: int
    started: float
    server: str

    @classmethod
    def of_this_process(cls, server: str) -> "HostRecord":
        """The record of the process that calls."""
        process = psutil.Process()
        return cls(pid=process.pid, started=process.create_time(), server=server)

    def process(self) -> psutil.Process | None:
        """The process, if it still is the one that was recorded."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return None
        return process if same else None

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
            pid=int(fields["pid"]), started=float(fields["started"]), server=str(fields["server"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
