"""Logs as one JSON object a line, with the ids of what a line is about."""

import logging
import sys

from dgdr_api.log_line import JsonFormatter

_QUIET = {
    "kopf": logging.WARNING,
    "kopf._core.reactor.running": logging.ERROR,  # says at each start that it leaves the signals to us
    "urllib3": logging.WARNING,
    "asyncio": logging.WARNING,
}


def configure(level: str) -> None:
    """Log to standard error; the libraries only what a person should know."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(max(least, logging.getLogger().level))
