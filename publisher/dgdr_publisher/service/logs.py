"""The program's log: to standard error, and to the workspace, where it survives a restart and goes to the report."""

import logging
from collections.abc import Callable, Mapping, Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path

from dgdr_api.log_line import JsonFormatter

from dgdr_publisher.report.logs import last_lines

MAX_BYTES = 2 * 1024 * 1024
CONTAINERS = ("publisher", "sweeper")


def log_to(workspace: Path, **ids: str) -> None:
    """Write what this program says to standard error and to ``publisher.log``.

    Args:
        workspace: folder of the log.
        ids: what every line is about.
    """
    file = RotatingFileHandler(workspace / "publisher.log", maxBytes=MAX_BYTES, backupCount=1)
    handlers: list[logging.Handler] = [logging.StreamHandler(), file]
    for handler in handlers:
        handler.setFormatter(JsonFormatter(**ids))
    logging.basicConfig(level=logging.INFO, handlers=handlers)


def logs_of(workspace: Path) -> Callable[[], Mapping[str, Sequence[str]]]:
    """Return what reads the last lines of both containers, redacted."""

    def read() -> dict[str, list[str]]:
        return {name: last_lines(_lines(workspace / f"{name}.log")) for name in CONTAINERS}

    return read


def _lines(path: Path) -> list[str]:
    """The lines of a log and of the file that it was rotated to."""
    files = (path.with_name(f"{path.name}.1"), path)
    return [line for file in files if file.is_file() for line in file.read_text("utf-8", "replace").splitlines()]
