"""What an error of the cluster means for a person: an exit code, what was asked, what was found, what would do."""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from dgdr_kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, KubeError, NoCluster, NotFound, Retryable

from dgdr_cli.exit_codes import FAILED, WRONG_INPUT

_CONNECTION = re.compile(r"^\w+\(.*?\): ")
"""How urllib3 begins: the connection as an object."""
_NOT_ALLOWED = " cannot "
"""In the words of the authorizer: user … cannot create resource …."""


def verdict(error: KubeError) -> tuple[int, str]:
    """Exit code and message of an error that a command has no better words for."""
    for kind, words in _WORDS:
        if isinstance(error, kind) and (found := words(error)) is not None:
            return found
    return FAILED, f"the API server failed: {error.message}; try again"


def is_kind_missing(error: KubeError) -> bool:
    """Whether there is no such kind at all: only then the answer is no Status object that names what is missing."""
    return error.reason == ""


def no_answer(error: KubeError) -> str:
    """Which server does not answer, and why, without the names of classes."""
    cause: Any = error.__cause__
    pool = getattr(cause, "pool", None)
    server = f"{pool.host}:{pool.port}" if pool is not None else ""
    why = str(getattr(cause, "reason", None) or cause or error.message)
    return f"the API server {server} does not answer: {_CONNECTION.sub('', why)}".replace("  ", " ")


def what_would_do(error: KubeError, needed: str = "a role that allows it") -> str:
    """What helps against a refusal: a role, where none allows it; a quota or a policy says itself what it wants.

    Args:
        error: the refusal.
        needed: the role, in words.
    """
    if _NOT_ALLOWED in error.message:
        return f"ask an administrator for {needed}"
    return "a rule of the cluster refuses it, no role would do: meet the rule or ask who made it"


def _no_cluster(error: KubeError) -> tuple[int, str]:
    return WRONG_INPUT, f"{error.asked}: {error.message}; name another with --kubeconfig and --context"


def _not_found(error: KubeError) -> tuple[int, str]:
    if is_kind_missing(error):
        return FAILED, f"{error.asked}: the cluster has no such kind; install the CustomResourceDefinitions first"
    return WRONG_INPUT, f"{error.message}; name another with --namespace or --context"


def _forbidden(error: KubeError) -> tuple[int, str]:
    if error.status == HTTPStatus.UNAUTHORIZED:
        return FAILED, f"the API server does not accept the credentials: {error.message}; log in again"
    return FAILED, f"{error.message}; {what_would_do(error)}"


def _retryable(error: KubeError) -> tuple[int, str] | None:
    if isinstance(error.__cause__, json.JSONDecodeError | UnicodeDecodeError):
        return FAILED, f"what answers is no API server: {error.message}; check --context and --kubeconfig"
    return None if error.status else (FAILED, f"{no_answer(error)}; check --context and --kubeconfig, or try again")


_WORDS: tuple[tuple[type[KubeError], Callable[[KubeError], tuple[int, str] | None]], ...] = (
    (NoCluster, _no_cluster),
    (NotFound, _not_found),
    (Forbidden, _forbidden),
    (AlreadyExists, lambda error: (WRONG_INPUT, error.message)),
    (Conflict, lambda error: (FAILED, f"somebody else changed it at the same time: {error.message}; try again")),
    (Invalid, lambda error: (FAILED, f"the API server refuses it: {error.message}")),
    (Retryable, _retryable),
)
"""What each kind of error means; the first that has words."""
