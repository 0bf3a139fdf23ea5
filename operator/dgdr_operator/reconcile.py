"""From a snapshot to a plan: pure, and empty when everything is as it should be."""

from collections.abc import Iterator

from dgdr_operator.kinds import RUN, is_deleted
from dgdr_operator.plan import Create, Delete, Plan, Step
from dgdr_operator.request import MOST_RUNS, Answer, answer, status_steps
from dgdr_operator.run import run_steps, stop_of
from dgdr_operator.settings import JobSettings
from dgdr_operator.snapshot import RunView, Snapshot


def reconcile(snapshot: Snapshot, settings: JobSettings) -> Plan:
    """Return what must be done for one request.

    Runs go first, then the request's own status, then the history: what a user waits for comes before tidying up. A
    new run is created only when every older one has ended.
    """
    if is_deleted(snapshot.request):
        return Plan()  # everything goes with it
    found = answer(snapshot, settings.sweeper_image)
    return Plan(tuple(_steps(snapshot, found, settings)))


def _steps(snapshot: Snapshot, found: Answer, settings: JobSettings) -> Iterator[Step]:
    suspended = bool(snapshot.request["spec"].get("suspend"))
    next_run = _next_run(found)
    newest = snapshot.runs[0].name if snapshot.runs else None
    for view in snapshot.runs:
        # Two live runs can only be what a lost race left: the newest stays.
        replaced_by = next_run or (newest if view.name != newest else None)
        yield from run_steps(view, stop_of(view, suspended=suspended, next_run=replaced_by), settings, snapshot.now)
    if found.start is not None and snapshot.live:
        return  # the request is answered when the new run is there
    names = [view.name for view in snapshot.runs]
    active = snapshot.live[0].name if snapshot.live else None
    if found.start is not None:
        yield Create(RUN, found.start, snapshot.request["metadata"]["uid"])
        active = str(found.start["metadata"]["name"])
        names.insert(0, active)
    yield from status_steps(snapshot, found, tuple(names), active)
    yield from (Delete(RUN, view.run, "Background") for view in _history(snapshot.runs))


def _next_run(found: Answer) -> str | None:
    return None if found.start is None else str(found.start["metadata"]["name"])


def _history(runs: tuple[RunView, ...]) -> Iterator[RunView]:
    """Yield the ended runs that are too many, oldest first."""
    return (view for view in reversed(runs[MOST_RUNS:]) if view.done)
