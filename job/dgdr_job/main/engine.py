"""The engine as a program: a run in, numbered events out."""

import time
from collections.abc import Callable

from dgdr_api.events import (
    CandidateEvent,
    Completed,
    CompletedEvent,
    Evaluations,
    EvaluationsEvent,
    Event,
    EventData,
    Failed,
    FailedEvent,
    Resolved,
    ResolvedEvent,
    RoundCompleted,
    RoundCompletedEvent,
)
from dgdr_api.run import RunSpec

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.explicit import check_parallel_configs
from dgdr_job.search.features import not_built
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains
from dgdr_job.search.sweep import Progress, Sweep


class EventWriter:
    """Wraps data into numbered events of wire version 1 and passes them on."""

    def __init__(self, send: Callable[[Event], object], *, attempt: str, run_uid: str, now: Callable[[], str]) -> None:
        self._send, self._attempt, self._run_uid, self._now = send, attempt, run_uid, now
        self._seq = 0

    def __call__(self, data: EventData) -> None:
        """Number, date and send one piece of data."""
        self._seq += 1
        envelope = {"seq": self._seq, "attempt": self._attempt, "run_uid": self._run_uid, "time": self._now()}
        self._send(_wrap(data, envelope))


def _wrap(data: EventData, envelope: dict[str, object]) -> Event:
    match data:
        case Resolved():
            return ResolvedEvent(**envelope, data=data)
        case Evaluations():
            return EvaluationsEvent(**envelope, data=data)
        case RoundCompleted():
            return RoundCompletedEvent(**envelope, data=data)
        case Completed():
            return CompletedEvent(**envelope, data=data)
        case Failed():
            return FailedEvent(**envelope, data=data)
        case _:
            return CandidateEvent(**envelope, data=data)


def check(run: RunSpec, catalog: Catalog | None = None) -> None:
    """Check what only the engine can check of a run, before anything is started or written.

    Args:
        run: a run's spec.
        catalog: source of the model's facts, asked where shapes are given; the disk cache of this user by default.

    Raises:
        InvalidRequest: search.parameters is wrong, or a parallel config is illegal.
        VersionChainBroken: the image binds no performance data; admission refuses this before.
    """
    chains = version_chains(run)
    if not not_built(run):
        config = search_config(run, {backend: each.performance_data for backend, each in chains.items()})
        check_parallel_configs(catalog or Catalog(), config, chains)


def sweep(
    run: RunSpec,
    emit: Callable[[EventData], None],
    *,
    catalog: Catalog | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Search a run and emit its events, the terminal one last.

    Args:
        run: a run's spec.
        emit: takes each piece of data in order.
        catalog: source of facts and times; the disk cache of this user by default.
        progress: told how far the search is.
        clock: seconds, for the time limit of the request.

    Raises:
        InvalidRequest: search.parameters is wrong.
        VersionChainBroken: the image binds no performance data.
    """
    Sweep(run, emit, catalog or Catalog(), progress, clock).run()
