"""Log lines that a machine can read: one JSON object each."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

# What every record has; the rest was given with `extra`.
_ORDINARY: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """A record as one line: time, level, message, where it is from, and what was given with `extra`.

    Nothing is logged but what a caller names: no request, header, manifest or environment is ever a field, so no
    secret of a job is.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_to_stderr(level: str) -> None:
    """Send everything of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
