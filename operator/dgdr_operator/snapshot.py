"""Everything that is known about one request at one moment: the input of every policy."""

from dataclasses import dataclass

from dgdr_api.reasons import COMPLETED
from dgdr_kube.resource import Object

from dgdr_operator.kinds import condition_of, generation_of


@dataclass(frozen=True)
class Refusal:
    """The API server would not take an object that the operator makes for a request or a run."""

    name: str
    """Name of the object."""
    message: str
    """The API server's own words."""
    final: bool
    """Whether the same object would be refused for ever."""


@dataclass(frozen=True)
class Turn:
    """Whether a run may search now."""

    granted: bool = True
    waiting: str = ""
    """If not, why, e.g. ``position 2 of 5``."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    """One run with what belongs to it."""

    run: Object
    job: Object | None = None
    """Its Job. None: there is none; if the run had one, that was asked of the API server just now."""
    pods: tuple[Object, ...] = ()
    """Pods of the Job."""
    events: tuple[Object, ...] = ()
    """Warnings about Job and pods."""
    turn: Turn = Turn()
    refusal: Refusal | None = None
    """Of the Job or what it needs."""

    @property
    def name(self) -> str:
        """Name of the run, and of its Job."""
        return str(self.run["metadata"]["name"])

    @property
    def generation(self) -> int:
        """Generation of the request that it answers."""
        return generation_of(self.run)

    @property
    def done(self) -> bool:
        """Whether it has ended: what was said once is never taken back."""
        found = condition_of(self.run, COMPLETED)
        return found is not None and found["status"] == "True"

    @property
    def had_job(self) -> bool:
        """Whether its Job was ever seen."""
        return bool((self.run.get("status") or {}).get("jobRef"))


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One request with its runs."""

    now: str
    """RFC 3339 in UTC."""
    request: Object
    runs: tuple[RunView, ...] = ()
    """Runs whose controller has the request's uid and whose deletion nobody asked for; newest generation first."""
    refusal: Refusal | None = None
    """Of the next run."""

    @property
    def live(self) -> tuple[RunView, ...]:
        """Runs that have not ended."""
        return tuple(view for view in self.runs if not view.done)
