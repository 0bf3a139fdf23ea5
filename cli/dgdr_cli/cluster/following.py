"""One object from state to state: watched, not polled; a server that restarts is waited for."""

import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgdr_kube.client import KubeClient
    from dgdr_kube.errors import KubeError
    from dgdr_kube.resource import Resource

PATIENCE_S = 600.0
"""How long a server that answered before may be away."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_SHORT_S = 1.0
"""A watch that ends sooner was cut off: asking again at once would keep a broken proxy busy."""
_GONE = 410


class Outage:
    """The time in which the server does not answer: pauses that grow, and an end to the patience.

    Args:
        tell: is told once when it begins and when it is over.
        patience_s: seconds after which the last error is raised.
        clock: seconds, monotonic.
        pause: waits so many seconds.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        *,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tell, self._patience_s, self._clock, self._pause = tell, patience_s, clock, pause
        self._since: float | None = None
        self._next_s = _FIRST_PAUSE_S
        self._answered = False

    @property
    def going_on(self) -> bool:
        """Whether there is one."""
        return self._since is not None

    def wait(self, error: "KubeError") -> None:
        """Pause, because of this error; raise it where the server never answered, or has been away too long."""
        from dgdr_kube.errors import Retryable

        if not self._answered or not (self.going_on or isinstance(error, Retryable)):
            raise error
        now = self._clock()
        if self._since is None:
            self._since = now
            self._tell("the API server does not answer; waiting for it")
        elif now - self._since > self._patience_s:
            raise error
        self._pause(self._next_s)
        self._next_s = min(self._next_s * 2, _LONGEST_PAUSE_S)

    def time(self) -> float:
        """Seconds of the clock."""
        return self._clock()

    def ended(self, began: float) -> None:
        """A watch that began at this time ended by itself."""
        if self._clock() - began < _SHORT_S:
            self._pause(_SHORT_S)

    def over(self) -> None:
        """The server has answered."""
        if self.going_on:
            self._tell("the API server answers again")
        self._since, self._next_s, self._answered = None, _FIRST_PAUSE_S, True


def states(
    kube: "KubeClient", resource: "Resource", namespace: str, name: str, outage: Outage
) -> Generator[dict[str, Any] | None, None, None]:
    """Yield an object as it is, then after each change; None while there is none of that name. Never ends by itself.

    A server that has just restarted may answer that it knows no such kind, or no roles yet: during an outage every
    error is waited out.

    Raises:
        KubeError: the server refuses, never answered, or was away too long.
    """
    from dgdr_kube.errors import KubeError

    selector = f"metadata.name={name}"
    while True:
        try:
            listing = kube.list(resource, namespace, field_selector=selector)
        except KubeError as error:
            outage.wait(error)
            continue
        outage.over()
        yield listing.items[0] if listing.items else None
        yield from _changes(kube, resource, namespace, selector, listing.resource_version, outage)


def _changes(
    kube: "KubeClient", resource: "Resource", namespace: str, selector: str, version: str, outage: Outage
) -> Generator[dict[str, Any] | None, None, None]:
    """Yield the object after each change, until the state must be listed again."""
    from dgdr_kube.errors import KubeError, NotFound

    try:
        while True:
            began = outage.time()
            for change in kube.watch(resource, namespace, resource_version=version, field_selector=selector):
                version = change.resource_version
                if change.type != "BOOKMARK":
                    yield None if change.type == "DELETED" else change.object
            outage.ended(began)
    except NotFound as error:
        if error.status != _GONE:
            outage.wait(error)
    except KubeError as error:
        outage.wait(error)
