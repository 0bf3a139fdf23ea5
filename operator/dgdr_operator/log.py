"""Logs as one JSON object a line, with the ids of what a line is about."""

import json
import logging
import sys
from datetime import UTC, datetime

IDS = ("namespace", "request", "run")
_QUIET = {
    "kopf": logging.WARNING,
    "kopf._core.reactor.running": logging.ERROR,  # says at each start that it leaves the signals to us
    "urllib3": logging.WARNING,
    "asyncio": logging.WARNING,
}


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in IDS if hasattr(record, name)}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure(level: str) -> None:
    """Log to standard error; the libraries only what a person should know."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(max(least, logging.getLogger().level))
