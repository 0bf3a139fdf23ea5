"""``Completed`` and ``phase``: one pure function of what is known about a run.

A laptop knows progress and outcome; the operator also knows the Job, its pod, and what was asked of the run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dgdr_api import reasons
from dgdr_api.reasons import COMPLETED, HONEST_OUTCOMES, Reason
from dgdr_api.run import Phase, Progress, RunOutcome


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """What the Job says."""

    state: Literal["active", "complete", "failed"]
    reason: str = ""
    """Reason of its Failed condition, e.g. DeadlineExceeded, PodFailurePolicy, BackoffLimitExceeded."""
    message: str = ""
    """The cluster's own words."""


@dataclass(frozen=True, kw_only=True)
class PodFacts:
    """What the pod, and the Events of Job and pod, say."""

    running: bool = False
    """Whether the sweeper runs."""
    rejected: bool = False
    """Whether the cluster refuses the pod in a way that waiting cannot help."""
    message: str = ""
    """The cluster's own words for what keeps it from running."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Everything that ``Completed`` depends on."""

    progress: Progress | None = None
    outcome: RunOutcome | None = None
    job: JobFacts | None = None
    pod: PodFacts | None = None
    cancelled: str | None = None
    """Reason of the cancellation, if there was one."""
    superseded_by: str | None = None
    """Name of the newer run, if there is one."""
    waiting: str = ""
    """Why the run has no Job yet, e.g. ``position 2 of 5``."""


@dataclass(frozen=True)
class Completion:
    """The condition ``Completed`` before it has a time."""

    reason: Reason
    message: str

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self.reason.status == "True"


def completion(facts: RunFacts) -> Completion:
    """Return the first end that holds, else where the run stands."""
    for end in _ENDS:
        found = end(facts)
        if found is not None:
            return found
    return _standing(facts)


def phase(found: Completion) -> Phase:
    """One word: Succeeded when the search answered, whatever the answer; Failed for every other end."""
    if found.done:
        return "Succeeded" if found.reason.name in HONEST_OUTCOMES else "Failed"
    return "Pending" if found.reason is reasons.PENDING else "Running"


def _cancelled(facts: RunFacts) -> Completion | None:
    return None if facts.cancelled is None else Completion(reasons.CANCELLED, facts.cancelled or "cancelled")


def _superseded(facts: RunFacts) -> Completion | None:
    if facts.superseded_by is None:
        return None
    return Completion(reasons.SUPERSEDED, f"run {facts.superseded_by} took its place")


def _outcome(facts: RunFacts) -> Completion | None:
    if facts.outcome is None:
        return None
    try:
        reason = reasons.reason_named(COMPLETED, facts.outcome.reason)
    except KeyError:
        reason = None
    if reason is None or reason.status != "True":
        return Completion(reasons.SEARCH_FAILED, f"unknown outcome {facts.outcome.reason}: {facts.outcome.message}")
    return Completion(reason, facts.outcome.message)


def _deadline(facts: RunFacts) -> Completion | None:
    if facts.job is None or facts.job.state != "failed" or facts.job.reason != "DeadlineExceeded":
        return None
    return Completion(reasons.DEADLINE_EXCEEDED, facts.job.message or "the Job's activeDeadlineSeconds passed")


def _pod_rejected(facts: RunFacts) -> Completion | None:
    if facts.pod is None or not facts.pod.rejected:
        return None
    return Completion(reasons.POD_REJECTED, facts.pod.message)


def _failed(facts: RunFacts) -> Completion | None:
    if facts.job is None or facts.job.state == "active":
        return None
    if facts.job.state == "complete":
        return Completion(reasons.SEARCH_FAILED, "the Job is complete, but the search reported no outcome")
    words = ": ".join(text for text in (facts.job.reason, facts.job.message) if text)
    pod = facts.pod.message if facts.pod is not None else ""
    return Completion(reasons.SEARCH_FAILED, "; ".join(text for text in (words, pod) if text) or "the Job failed")


_ENDS: tuple[Callable[[RunFacts], Completion | None], ...] = (
    _cancelled,
    _superseded,
    _outcome,
    _deadline,
    _pod_rejected,
    _failed,
)


def _standing(facts: RunFacts) -> Completion:
    progress = facts.progress
    started = progress is not None and bool(progress.branches)
    if not started and facts.job is not None and (facts.pod is None or not facts.pod.running):
        return Completion(reasons.PENDING, facts.pod.message if facts.pod is not None else "the Job has no pod yet")
    if not started and facts.job is None and (facts.waiting or progress is None):
        return Completion(reasons.PENDING, facts.waiting or "the run waits for its Job")
    if progress is None or not progress.branches:
        return Completion(reasons.PREFLIGHT, "finding out what can be evaluated")
    counters = progress.evaluations
    waits = facts.pod.message if facts.pod is not None and not facts.pod.running else ""
    words = "; ".join(text for text in (progress.summary, waits) if text)
    if counters.remaining == 0 and counters.running == 0 and counters.scheduled > 0:
        return Completion(reasons.PUBLISHING, words)
    return Completion(reasons.EVALUATING_CANDIDATES, words)
