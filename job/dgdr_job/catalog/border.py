"""The border around calls into the performance model: quiet, offline, and with named errors.

Inside the border the environment holds nothing that changes the model's answers, its warnings are collected instead of
printed, and the listed kinds of its errors become `Unsupported`. Every other error passes unchanged.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import yaml

from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.wheel import wheel_path
from dgdr_job.catalog.wording import sentence

Reasons = Mapping[type[BaseException], Reason]

_LOGGER = logging.getLogger("aiconfigurator_core")
_FOREIGN_ENVIRONMENT = ("AIC_", "AICONFIGURATOR_")
_TOKENS = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})


class _Notes(logging.Handler):
    """Collects what is logged as warning or worse."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        note = without_paths(record.getMessage().splitlines()[0])
        if note not in self._notes:
            self._notes.append(note)


def without_paths(text: str) -> str:
    """Removes the package's place on this machine from the paths of its files."""
    return text.replace(f"{wheel_path()}/", "")


@contextmanager
def border(subject: str, reasons: Reasons, notes: list[str]) -> Iterator[None]:
    """Runs calls into the performance model.

    Args:
        subject: What is asked for; begins the message of a refusal.
        reasons: Kinds of errors that mean a refusal, and its reason.
        notes: Warnings are appended here, each once.

    Raises:
        Unsupported: An error of a kind in ``reasons`` was raised, or one was raised from it.
    """
    handler = _Notes(notes)
    propagate = _LOGGER.propagate
    _LOGGER.addHandler(handler)
    _LOGGER.propagate = False
    environment = {key: value for key, value in os.environ.items() if _is_foreign(key)}
    for key in environment:
        del os.environ[key]
    loader = yaml.SafeLoader
    # The model reads dozens of YAML files through yaml.safe_load; libyaml reads them ten times faster, to equal values.
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", loader)  # type: ignore[misc]
    try:
        yield
    except tuple(reasons) as error:
        refusal = refusal_for(error, subject, reasons)
        if refusal is None:
            raise
        raise refusal from error
    finally:
        yaml.SafeLoader = loader  # type: ignore[misc]
        for key in [key for key in os.environ if _is_foreign(key)]:
            del os.environ[key]
        os.environ.update(environment)
        _LOGGER.propagate = propagate
        _LOGGER.removeHandler(handler)


def refusal_for(error: BaseException, subject: str, reasons: Reasons) -> Unsupported | None:
    """The refusal that an error stands for.

    The outermost error of the model's own kinds decides. Without one it is the innermost error: the model wraps
    whatever happens below it, defects included, into ValueError.

    Args:
        error: What was raised.
        subject: Begins the message.
        reasons: Kinds of errors and their reasons; the most specific kind counts.

    Returns:
        The refusal, or None when the innermost error is of no listed kind.
    """
    chain = [error]
    while (inner := chain[-1].__cause__) is not None:
        chain.append(inner)
    for found in chain:
        if type(found).__module__ != "builtins" and (reason := _reason_of(found, reasons)) is not None:
            return Unsupported(reason, f"{subject}: {_text(found)}")
    root = chain[-1]
    if (reason := _reason_of(root, reasons)) is None:
        return None
    return Unsupported(reason, f"{subject}: {_text(root)}")


def _reason_of(error: BaseException, reasons: Reasons) -> Reason | None:
    return next((reasons[kind] for kind in type(error).__mro__ if kind in reasons), None)


def _text(error: BaseException) -> str:
    if isinstance(error, KeyError) and len(error.args) == 1:
        return f"the key {error} is missing"
    lines = str(error).strip().splitlines()
    return sentence(without_paths(lines[0])) if lines else type(error).__name__


def _is_foreign(key: str) -> bool:
    return key.startswith(_FOREIGN_ENVIRONMENT) or key in _TOKENS
