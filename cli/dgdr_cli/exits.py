"""How a command ends: errors as messages and exit codes. Heavy rooms are imported only when an error is at hand."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from dgdr_cli import signals
from dgdr_cli.exit_codes import FAILED, HONEST_NO, INTERRUPTED, OK, WRONG_INPUT
from dgdr_cli.plain_text import plain

TRACEBACK_SWITCH = "DGDR_TRACEBACK"


def fail(code: int, message: str) -> NoReturn:
    """Print a message to stderr and end with this code."""
    note(message)
    raise typer.Exit(code)


def note(message: str) -> None:
    """Print a message to stderr; nothing in it, whoever wrote it, moves the cursor."""
    sys.stderr.write(f"dgdr: {plain(message)}\n")


@contextmanager
def border() -> Iterator[None]:
    """Turn every error of the rooms into a message and an exit code; nothing gets past it but a switch for traces."""
    try:
        yield
    except (typer.Exit, typer.Abort, SystemExit):
        raise
    except KeyboardInterrupt:
        fail(INTERRUPTED, "interrupted")
    except Exception as error:
        verdict = _verdict(error)
        if verdict is None and signals.exit_code(otherwise=OK) != OK:
            fail(INTERRUPTED, "interrupted")  # what a signal leads to in foreign code
        if os.environ.get(TRACEBACK_SWITCH):
            raise
        code, message = verdict or _internal(error)
        fail(code, message)


def _verdict(error: Exception) -> tuple[int, str] | None:
    """Exit code and message of an error that a room knows."""
    for room in (_contract, _publisher, _cluster, _engine, _system):
        found = room(error)
        if found:
            return found
    return None


def _internal(error: Exception) -> tuple[int, str]:
    name = type(error).__name__
    return FAILED, f"internal error, please report it: {name}: {error} (set {TRACEBACK_SWITCH}=1 for the trace)"


def _contract(error: Exception) -> tuple[int, str] | None:
    from dgdr_api.errors import ContractError, InvalidRequest

    if isinstance(error, InvalidRequest):
        return WRONG_INPUT, "the input is not valid\n" + "\n".join(f"  {problem}" for problem in error.problems)
    return (WRONG_INPUT, str(error)) if isinstance(error, ContractError) else None


def _publisher(error: Exception) -> tuple[int, str] | None:
    from dgdr_publisher.errors import DocumentError, PublisherError, RenderError

    match error:
        case DocumentError():
            return WRONG_INPUT, str(error)
        case RenderError():
            return HONEST_NO, f"cannot be rendered: {error}"
        case PublisherError():
            return FAILED, str(error)
        case _:
            return None


def _cluster(error: Exception) -> tuple[int, str] | None:
    from dgdr_kube.errors import KubeError

    if not isinstance(error, KubeError):
        return None
    from dgdr_cli.cluster.errors import verdict

    return verdict(error)


def _engine(error: Exception) -> tuple[int, str] | None:
    from dgdr_job.catalog.errors import CatalogError

    if isinstance(error, CatalogError):
        return HONEST_NO, str(error)
    from dgdr_job.replay.errors import ReplayError, StalledReplay

    if isinstance(error, ReplayError):
        return FAILED if isinstance(error, StalledReplay) else WRONG_INPUT, str(error)
    return None


def _system(error: Exception) -> tuple[int, str] | None:
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return FAILED, f"{where}{error.strerror or error}"
    return None
