"""The sweeper as a program: a parent that runs the engine as a child and delivers its events to the publisher.

Exit codes: 0 after the acknowledged end of a search, whatever it found; 4 after a failure, a bad input included; 143
after SIGTERM, without a terminal event.
"""

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from dgdr_api.log_line import JsonFormatter

if TYPE_CHECKING:
    from dgdr_job.main.journal import Journal

SOCKET = "publisher.sock"
"""In the workspace: the publisher's."""
OK, FAILED, TERMINATED = 0, 4, 143
MAX_LOG_BYTES = 2 * 1024 * 1024

_log = logging.getLogger(__name__)


class Terminated(BaseException):
    """SIGTERM came."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Search one run and return the exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        given = _parser().parse_args(arguments)
        _log_to(given.workspace, attempt=given.attempt, **_ids(given.run))
        threading.excepthook = _end
        mounts = {"--claims": given.claims, "--config-maps": given.config_maps}
        return _search(given.run, given.workspace, given.attempt, mounts)
    except SystemExit as ended:  # of the argument parser
        return OK if ended.code == 0 else FAILED
    except OSError as error:
        _log.error("the workspace cannot be used: %s", error)
        return FAILED
    except Terminated:
        return TERMINATED


def add_mounts(parser: argparse.ArgumentParser) -> None:
    """Take the folders in which the claims and ConfigMaps are mounted that a run names, each by its name."""
    parser.add_argument("--claims", type=Path, help="folder of the mounted claims")
    parser.add_argument("--config-maps", type=Path, help="folder of the mounted ConfigMaps")


def _search(run: Path, workspace: Path, attempt: str, mounts: dict[str, Path | None]) -> int:
    from dgdr_job.main.journal import COMPLETED, Journal  # noqa: PLC0415 - after SIGTERM has its handler
    from dgdr_job.main.supervision import Supervisor  # noqa: PLC0415 - as above

    os.environ.setdefault("DGDR_CACHE_DIR", str(workspace / "cache"))
    journal = Journal(workspace / "sweeper" / f"{attempt}.ndjson", attempt=attempt, run_uid=_run_uid(run), now=_now)
    given = [word for option, folder in mounts.items() if folder is not None for word in (option, str(folder))]
    supervisor = Supervisor([sys.executable, "-m", "dgdr_job.main.child", "--run", str(run), *given], journal)
    try:
        if journal.end is None:
            threading.Thread(target=supervisor.run, name="supervisor", daemon=True).start()
        delivered = _deliver(journal, workspace / SOCKET)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end has begun
        supervisor.stop()
    if supervisor.error is not None:
        raise supervisor.error
    return OK if delivered and journal.end == COMPLETED else FAILED


def _deliver(journal: "Journal", socket: Path) -> bool:
    """Send everything; False: the publisher does not take it. The engine starts while this imports its client."""
    from dgdr_job.main.client import DeliveryError, EventClient  # noqa: PLC0415 - see above

    client = EventClient(socket)
    try:
        if not journal.run_uid:
            journal.run_uid = client.run_uid()
        client.deliver(journal)
    except DeliveryError as error:
        _log.error("%s", error)
        return False
    finally:
        client.close()
    return True


def _run_uid(path: Path) -> str | None:
    """Uid of the run, where the file holds the whole run and not its spec alone; else the publisher knows it."""
    return _metadata(path).get("uid")


def _ids(path: Path) -> dict[str, str]:
    """What every line of the log is about."""
    metadata = _metadata(path)
    found = {"namespace": metadata.get("namespace"), "run": metadata.get("name")}
    return {name: text for name, text in found.items() if text is not None}


def _metadata(path: Path) -> dict[str, str]:
    """The texts in the metadata of the run; empty where the file is no run: the engine says what is wrong with it."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(metadata, dict):
        return {}
    return {name: text for name, text in metadata.items() if isinstance(text, str)}


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated


def _end(crash: threading.ExceptHookArgs) -> None:
    """End the program with a thread of it: half of it would wait for ever."""
    _log.critical("a thread crashed", exc_info=crash.exc_value)
    os._exit(FAILED)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _log_to(workspace: Path, **ids: str) -> None:
    """Write to standard error, and to the workspace, from where the publisher takes the last lines."""
    workspace.mkdir(parents=True, exist_ok=True)
    file = RotatingFileHandler(workspace / "sweeper.log", maxBytes=MAX_LOG_BYTES, backupCount=1)
    handlers: list[logging.Handler] = [logging.StreamHandler(), file]
    for handler in handlers:
        handler.setFormatter(JsonFormatter(**ids))
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dgdr-sweeper", description="Searches one run and tells the publisher.")
    parser.add_argument("--run", required=True, type=Path, help="the run's spec as JSON")
    parser.add_argument("--workspace", required=True, type=Path, help="folder shared with the publisher")
    parser.add_argument("--attempt", required=True, help="uid of the pod")
    add_mounts(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
