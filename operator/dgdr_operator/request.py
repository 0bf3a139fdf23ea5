"""What becomes of a request: refused, answered by a run that exists, or a new run. Policies over one snapshot."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dgdr_api import reasons
from dgdr_api.admission import Accepted, Rejected, Rejection, admit
from dgdr_api.base import wire
from dgdr_api.conditions import Condition, condition
from dgdr_api.errors import InvalidRequest
from dgdr_api.group import ANNOTATION_INPUT_HASH, ANNOTATION_RERUN_REASON
from dgdr_api.parse import request_of
from dgdr_api.reasons import ACCEPTED, CANCELLED, COMPLETED, SUPERSEDED, Reason
from dgdr_api.run_object import run_of
from dgdr_kube.resource import Object

from dgdr_operator.kinds import REQUEST, condition_of, is_deleted
from dgdr_operator.plan import ApplyStatus, Emit
from dgdr_operator.snapshot import RunView, Snapshot

MOST_RUNS = 10
"""Runs of one request that are kept."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the current generation of a request comes to."""

    reason: Reason | None = None
    """Of Accepted; None: there is nothing to say yet."""
    message: str = ""
    start: Object | None = None
    """The run that shall be started."""


@dataclass(frozen=True)
class Case:
    """A snapshot, and what the contract says about its request: looked at only where a policy needs it."""

    snapshot: Snapshot
    sweeper_image: str

    @property
    def generation(self) -> int:
        """Generation of the request."""
        return int(self.snapshot.request["metadata"]["generation"])

    @cached_property
    def verdict(self) -> Accepted | Rejected:
        """Whether the request may run."""
        try:
            request = request_of(self.snapshot.request)
        except InvalidRequest as error:
            found = (Rejection(reasons.INVALID_SPEC, problem.field, problem.message) for problem in error.problems)
            return Rejected(tuple(found))
        return admit(request, sweeper_image=self.sweeper_image)

    @cached_property
    def next_run(self) -> dict[str, Any]:
        """The run of this generation; only of an accepted request."""
        if isinstance(self.verdict, Rejected):
            raise TypeError(f"a refused request has no run: {self.verdict.message}")
        return wire(run_of(request_of(self.snapshot.request), self.verdict.spec))


def answer(snapshot: Snapshot, sweeper_image: str) -> Answer:
    """Return what the first policy says that has something to say."""
    case = Case(snapshot, sweeper_image)
    return next(found for policy in _POLICIES if (found := policy(case)) is not None)


def _has_run(case: Case) -> Answer | None:
    """A generation that has its run is answered for ever, whatever a later version of the operator would say."""
    view = next((view for view in case.snapshot.runs if view.generation == case.generation), None)
    return None if view is None else Answer(reason=reasons.RUN_CREATED, message=f"run {view.name}")


def _was_answered(case: Case) -> Answer | None:
    """So is one that was accepted: its run may have been pruned, or deleted by a user who does not want it back."""
    found = condition_of(case.snapshot.request, ACCEPTED)
    if found is None or found["status"] != "True" or found.get("observedGeneration") != case.generation:
        return None
    return Answer(reason=reasons.RUN_CREATED, message=found.get("message", ""))


def _refused(case: Case) -> Answer | None:
    if isinstance(case.verdict, Accepted):
        return None
    return Answer(reason=case.verdict.reason, message=case.verdict.message)


def _suspended(case: Case) -> Answer | None:
    if not case.snapshot.request["spec"].get("suspend"):
        return None
    if not case.snapshot.runs:
        return Answer()
    message = f"suspended: nothing is started; the last run is {case.snapshot.runs[0].name}"
    return Answer(reason=reasons.RUN_CREATED, message=message)


def _asks_for_the_same(case: Case) -> Answer | None:
    last = case.snapshot.runs[0] if case.snapshot.runs else None
    if last is None or _was_stopped(last):
        return None
    annotations = last.run["metadata"].get("annotations") or {}
    wanted = case.next_run["metadata"]["annotations"]
    if annotations.get(ANNOTATION_INPUT_HASH) != wanted[ANNOTATION_INPUT_HASH]:
        return None
    rerun = wanted.get(ANNOTATION_RERUN_REASON)
    if rerun is not None and rerun != annotations.get(ANNOTATION_RERUN_REASON):
        return None
    message = f"generation {case.generation} asks for what run {last.name} searches"
    return Answer(reason=reasons.RUN_CREATED, message=message)


def _was_stopped(view: RunView) -> bool:
    """Whether the last run was cancelled, superseded by one that never came, or is losing its Job on the way there."""
    if view.done:
        found = condition_of(view.run, COMPLETED)
        return found is not None and found["reason"] in (CANCELLED.name, SUPERSEDED.name)
    return is_deleted(view.job) if view.job is not None else view.had_job


def _cannot_be_made(case: Case) -> Answer | None:
    refusal = case.snapshot.refusal
    if refusal is None or not refusal.final or refusal.name != case.next_run["metadata"]["name"]:
        return None
    return Answer(reason=reasons.INVALID_SPEC, message=f"the API server refuses the run: {refusal.message}")


def _starts(case: Case) -> Answer:
    name = case.next_run["metadata"]["name"]
    return Answer(reason=reasons.RUN_CREATED, message=f"run {name}", start=case.next_run)


_POLICIES: tuple[Callable[[Case], Answer | None], ...] = (
    _has_run,
    _was_answered,
    _refused,
    _suspended,
    _asks_for_the_same,
    _cannot_be_made,
    _starts,
)


def status_steps(
    snapshot: Snapshot, found: Answer, names: tuple[str, ...], active: str | None
) -> tuple[ApplyStatus | Emit, ...]:
    """Return what must be written so that the request's status says where it stands; nothing when it does already.

    Args:
        snapshot: the request as it is.
        found: the answer to its generation.
        names: its runs, newest first.
        active: name of the live run.
    """
    request = snapshot.request
    old = request.get("status") or {}
    generation = request["metadata"]["generation"]
    said, new = _accepted(snapshot, found, generation)
    status: dict[str, Any] = {"observedGeneration": generation}
    if active is not None:
        status["activeRunRef"] = {"name": active}
    if names:
        status["recentRunRefs"] = [{"name": name} for name in names[:MOST_RUNS]]
    if said is not None:
        status["conditions"] = [said]
    if status == {name: old[name] for name in _OWNED if old.get(name)}:
        return ()
    applied = ApplyStatus(
        REQUEST,
        {
            "apiVersion": request["apiVersion"],
            "kind": request["kind"],
            "metadata": {name: request["metadata"][name] for name in ("name", "namespace")},
            "status": status,
        },
        request["metadata"]["uid"],
        request["metadata"]["resourceVersion"],
    )
    if said is None or not new:
        return (applied,)
    kind: Any = "Normal" if said["status"] == "True" else "Warning"
    return applied, Emit(request, kind, said["reason"], said["message"])


_OWNED = ("observedGeneration", "activeRunRef", "recentRunRefs", "conditions")


def _accepted(snapshot: Snapshot, found: Answer, generation: int) -> tuple[dict[str, Any] | None, bool]:
    """Return the condition Accepted, if there is one, and whether it says something new."""
    if found.reason is None:
        return None, False
    old = condition_of(snapshot.request, ACCEPTED)
    previous = () if old is None else (Condition.model_validate(old),)
    made = condition(found.reason, found.message, now=snapshot.now, previous=previous, generation=generation)
    return wire(made), not previous or _as_of(previous[0], made) != made


def _as_of(old: Condition, new: Condition) -> Condition:
    """Return ``old`` as if it answered the generation that ``new`` answers."""
    return old.model_copy(update={"observed_generation": new.observed_generation})
