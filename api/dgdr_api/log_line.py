"""A line of a log as a JSON object, the same in every program: what happened, and the ids of what it is about."""

import json
import logging
from datetime import UTC, datetime

IDS = ("namespace", "request", "run", "attempt", "candidate")
"""Attributes of a record that a line carries: ``logger.info(…, extra={"candidate": name})``."""


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object.

    Args:
        ids: what every line of this program is about, e.g. ``run="qwen-run-1-abcd"``; a record may say otherwise.
    """

    def __init__(self, **ids: str) -> None:
        super().__init__()
        self._ids = ids

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= self._ids | {name: getattr(record, name) for name in IDS if hasattr(record, name)}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
