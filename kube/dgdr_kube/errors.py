"""Errors of this room: what was asked of the API server, what it answered, and whether asking again can help.

::

    KubeError
    ├── NotFound         there is no such object, or no such kind
    ├── Conflict         the object is not in the state that was asked for
    │   ├── AlreadyExists    a creation met an object of the same name
    │   ├── Stale            uid or resourceVersion are not those of the stored object: read again
    │   └── FieldConflict    another field manager owns a field: a bug of ours, never forced
    ├── Forbidden        credentials, RBAC, quota or an admission plugin refuse
    ├── Invalid          the object is wrong, for ever
    │   └── TooLarge     the object does not fit
    ├── Retryable        no answer in time, too many requests, or a fault of the server: ask again later
    └── NoCluster        no server was asked: the configuration names none that can be used
"""

import json
from http import HTTPStatus


class KubeError(Exception):
    """The API server did not do what it was asked."""

    def __init__(
        self, asked: str, message: str, *, status: int = 0, reason: str = "", retry_after_s: float | None = None
    ) -> None:
        self.asked = asked
        """Verb and path."""
        self.message = message
        """The server's own words."""
        self.status = status
        """HTTP status; 0 when there was no answer."""
        self.reason = reason
        """Reason of the server's Status object, e.g. AlreadyExists."""
        self.retry_after_s = retry_after_s
        """Seconds that the server asks to wait; None: it does not say."""
        super().__init__(f"{asked}: {f'{status} ' if status else ''}{message}")


class NotFound(KubeError):  # noqa: N818 - named as the API server names it
    """There is no such object, or no such kind."""


class Conflict(KubeError):  # noqa: N818
    """The object is not in the state that was asked for."""


class AlreadyExists(Conflict):
    """A creation met an object of the same name."""


class Stale(Conflict):
    """Uid or resourceVersion are not those of the stored object: read it again."""


class FieldConflict(Conflict):
    """Another field manager owns a field. Each field has one writer, so this is a bug."""


class Forbidden(KubeError):  # noqa: N818
    """Credentials, RBAC, quota or an admission plugin refuse."""


class Invalid(KubeError):  # noqa: N818
    """The object is wrong, and stays so."""


class TooLarge(Invalid):
    """The object does not fit into a request, or into the store behind the API server."""


class Retryable(KubeError):  # noqa: N818
    """No answer in time, too many requests, or a fault of the server: the same request may succeed later."""


class NoCluster(KubeError):  # noqa: N818
    """No server was asked: the configuration names none that can be used."""


_TOO_LARGE = ("request is too large", "trying to send message larger than max", "Request entity too large")
_PERMANENT = ("field not declared", "duplicate entries", "failed to create typed patch", "ResourceExhausted")
"""Texts of answers with status 500 that repeat for ever."""
_KINDS: dict[int, type[KubeError]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.GONE: NotFound,
    HTTPStatus.REQUEST_TIMEOUT: Retryable,
    HTTPStatus.TOO_MANY_REQUESTS: Retryable,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TooLarge,
}
"""By status; every other 4xx, and a 500 that repeats, means that the object is wrong."""


def error_of(asked: str, status: int, body: str, *, retry_after: str | None = None) -> KubeError:
    """Return the error that an answer of the API server means.

    Args:
        asked: verb and path of the request.
        status: HTTP status, at least 400.
        body: a Status object as JSON, or whatever a proxy in front of the server says.
        retry_after: the header Retry-After; only a number of seconds is understood.
    """
    answer = _status_object(body)
    reason = str(answer.get("reason", ""))
    message = str(answer.get("message", "")) or body.strip()[:500] or HTTPStatus(status).phrase
    wait_s = float(retry_after) if retry_after is not None and retry_after.strip().isdecimal() else None
    return _kind(status, reason, message, answer)(asked, message, status=status, reason=reason, retry_after_s=wait_s)


def _kind(status: int, reason: str, message: str, answer: dict[str, object]) -> type[KubeError]:
    if any(text in message for text in _TOO_LARGE):
        return TooLarge
    if status == HTTPStatus.CONFLICT:
        return _conflict(reason, answer)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and not any(text in message for text in _PERMANENT):
        return Retryable
    return _KINDS.get(status, Invalid)


def _conflict(reason: str, answer: dict[str, object]) -> type[Conflict]:
    details = answer.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if reason == "AlreadyExists":
        return AlreadyExists
    if any(isinstance(cause, dict) and cause.get("reason") == "FieldManagerConflict" for cause in causes or ()):
        return FieldConflict
    return Stale


def _status_object(body: str) -> dict[str, object]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) and value.get("kind") == "Status" else {}
