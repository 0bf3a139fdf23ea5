"""How a run goes on: its Job, its end, and its status. Policies over one run and what was asked of it."""

from dataclasses import dataclass
from typing import Any, TypeVar

from dgdr_api import reasons
from dgdr_api.base import wire
from dgdr_api.completion import Completion, JobFacts, PodFacts, RunFacts, completion, phase
from dgdr_api.conditions import Condition, condition
from dgdr_api.group import ANNOTATION_CANCEL
from dgdr_api.reasons import COMPLETED
from dgdr_api.run import Progress, RunOutcome
from dgdr_kube.resource import Object
from pydantic import BaseModel, ValidationError

from dgdr_operator.job_builder import build_job, build_role_binding, build_service_account
from dgdr_operator.job_facts import is_finished, job_facts
from dgdr_operator.kinds import JOB, ROLE_BINDING, RUN, SERVICE_ACCOUNT, condition_of, is_deleted
from dgdr_operator.plan import Apply, ApplyStatus, Create, Delete, Emit, Step
from dgdr_operator.pod_facts import pod_facts
from dgdr_operator.settings import JobSettings
from dgdr_operator.snapshot import RunView

T = TypeVar("T", bound=BaseModel)
_STOPPED = frozenset(reason.name for reason in (reasons.CANCELLED, reasons.SUPERSEDED, reasons.POD_REJECTED))
"""Ends after which nothing of the run may go on."""


@dataclass(frozen=True)
class Stop:
    """What was asked of a run: to end."""

    cancelled: str | None = None
    """Why it is cancelled."""
    superseded_by: str | None = None
    """Name of the run that takes its place."""


def stop_of(view: RunView, *, suspended: bool, next_run: str | None) -> Stop | None:
    """Return whether a live run shall end, and why."""
    annotations = view.run["metadata"].get("annotations") or {}
    if ANNOTATION_CANCEL in annotations:
        return Stop(cancelled=annotations[ANNOTATION_CANCEL] or "cancelled by a user")
    if suspended:
        return Stop(cancelled="the request is suspended")
    return None if next_run is None else Stop(superseded_by=next_run)


def run_steps(view: RunView, stop: Stop | None, settings: JobSettings, now: str) -> tuple[Step, ...]:
    """Return what must be done for one run.

    Args:
        view: the run with what belongs to it.
        stop: whether it shall end.
        settings: what all Jobs have in common.
        now: RFC 3339 in UTC.
    """
    if view.done:
        return _stop_what_is_left(view)
    facts = run_facts(view)
    if stop is not None and not _ended_first(view, facts):
        return _stopping(view, facts, stop, now)
    found = completion(facts)
    steps = _status(view, found, now)
    if found.done and found.reason.name in _STOPPED:
        return (*steps, *_delete_job(view))
    if not found.done and view.job is None and view.turn.granted:
        return (*steps, *_start(view, settings))
    return steps


def run_facts(view: RunView) -> RunFacts:
    """Return everything that the end of a run depends on, but for what was asked of it."""
    status = view.run.get("status") or {}
    pod = pod_facts(view)
    return RunFacts(
        progress=_read(Progress, status.get("progress")),
        outcome=_read(RunOutcome, status.get("outcome")),
        job=job_facts(view),
        pod=pod,
        waiting=view.turn.waiting or (pod.message if pod is not None and view.job is None else ""),
    )


def _ended_first(view: RunView, facts: RunFacts) -> bool:
    """Whether the search had ended before anybody could stop it: there is an outcome, and nobody touched its Job."""
    return facts.outcome is not None and view.job is not None and not is_deleted(view.job)


def _stopping(view: RunView, facts: RunFacts, stop: Stop, now: str) -> tuple[Step, ...]:
    """First the Job goes, with its pod; only then the run ends, so that nothing is published after its end."""
    if view.job is None or is_finished(view.job):
        asked = RunFacts(
            progress=facts.progress,
            outcome=facts.outcome,
            job=facts.job,
            pod=facts.pod,
            cancelled=stop.cancelled,
            superseded_by=stop.superseded_by,
        )
        return (*_status(view, completion(asked), now), *_delete_job(view))
    why = f"cancelled: {stop.cancelled}" if stop.cancelled is not None else f"run {stop.superseded_by} takes its place"
    standing = completion(RunFacts(progress=facts.progress, job=JobFacts(state="active"), pod=PodFacts(running=True)))
    return (*_delete_job(view), *_status(view, Completion(standing.reason, f"ending, {why}"), now))


def _stop_what_is_left(view: RunView) -> tuple[Step, ...]:
    found = condition_of(view.run, COMPLETED)
    return _delete_job(view) if found is not None and found["reason"] in _STOPPED else ()


def _delete_job(view: RunView) -> tuple[Step, ...]:
    if view.job is None or is_deleted(view.job) or is_finished(view.job):
        return ()
    return (Delete(JOB, view.job, "Foreground"),)


def _start(view: RunView, settings: JobSettings) -> tuple[Step, ...]:
    run, uid = view.run, view.run["metadata"]["uid"]
    return (
        Apply(SERVICE_ACCOUNT, build_service_account(run), uid),
        Apply(ROLE_BINDING, build_role_binding(run, settings), uid),
        Create(JOB, build_job(run, settings), uid),
    )


def _status(view: RunView, found: Completion, now: str) -> tuple[Step, ...]:
    """Return the status with everything that the operator owns; nothing when it stands there already."""
    run = view.run
    old = run.get("status") or {}
    said = condition_of(run, COMPLETED)
    previous = () if said is None else (Condition.model_validate(said),)
    made = wire(
        condition(found.reason, found.message, now=now, previous=previous, generation=run["metadata"].get("generation"))
    )
    status: dict[str, Any] = {"phase": phase(found), "conditions": [made]}
    if (job := _job_ref(view)) is not None:
        status["jobRef"] = job
    if (started := old.get("startTime") or (view.job and view.job["metadata"]["creationTimestamp"])) is not None:
        status["startTime"] = started
    if found.done:
        status["completionTime"] = now
    if status == _owned(old, said):
        return ()
    applied = ApplyStatus(RUN, _as_status(run, status), run["metadata"]["uid"], run["metadata"]["resourceVersion"])
    if not found.done:
        return (applied,)
    word = f"{found.reason.name}: {found.message}" if found.message else found.reason.name
    return applied, Emit(run, "Normal" if status["phase"] == "Succeeded" else "Warning", found.reason.name, word)


def _job_ref(view: RunView) -> dict[str, Any] | None:
    if view.job is not None:
        return {name: view.job["metadata"][name] for name in ("name", "uid")}
    ref: dict[str, Any] | None = (view.run.get("status") or {}).get("jobRef")
    return ref


def _owned(old: dict[str, Any], said: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: old[name] for name in ("phase", "jobRef", "startTime", "completionTime") if name in old
    }
    return found if said is None else found | {"conditions": [said]}


def _as_status(run: Object, status: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: run["metadata"][name] for name in ("name", "namespace")}
    return {"apiVersion": run["apiVersion"], "kind": run["kind"], "metadata": metadata, "status": status}


def _read(model: type[T], value: object) -> T | None:
    """Read a part of the status that the publisher writes; one that is not of its form says nothing."""
    if value is None:
        return None
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
