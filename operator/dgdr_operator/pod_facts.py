"""What keeps a search from running, in the cluster's own words: from pod statuses, and Events of Job and pods.

A chain of small policies: the first that finds something speaks. Quota, scheduling, missing claims and pulls may heal,
so they are waited for; what the cluster would refuse for ever is final.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dgdr_api.completion import PodFacts
from dgdr_kube.resource import JOB, POD, Object

from dgdr_operator.kinds import is_deleted
from dgdr_operator.programs import PUBLISHER, SWEEPER
from dgdr_operator.snapshot import RunView

MOST_PUBLISHER_CRASHES = 5
"""After so many crashes before the search started (about four minutes) the sidecar will not start."""

_FINAL_REFUSALS = re.compile(
    r"violates PodSecurity|no PriorityClass with name|admission webhook .* denied the request|is invalid:"
    r"|(maximum|minimum) \S+ usage per (Container|Pod) is|serviceaccount .* is forbidden"
)
"""Words of FailedCreate that no waiting changes. Quota and a service account that is still to come are not here."""
_FINAL_WAITS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_NO_NEWS = frozenset({"PodInitializing", "ContainerCreating"})


@dataclass(frozen=True)
class Cause:
    """Why the search does not run."""

    message: str
    final: bool = False


def pod_facts(view: RunView) -> PodFacts | None:
    """Return what the pod of a run says; None without a Job."""
    if view.job is None:
        return None if view.refusal is None else PodFacts(rejected=view.refusal.final, message=view.refusal.message)
    pod = _newest(view.pods)
    if pod is None:
        refusal = _not_created(view)
        return PodFacts(rejected=refusal.final, message=refusal.message)
    running = "running" in _state(pod, SWEEPER)
    cause = next((found for policy in _POLICIES if (found := policy(pod, view)) is not None), None)
    if running or cause is None:
        return PodFacts(running=running, message="" if running else f"pod {pod['metadata']['name']} starts")
    return PodFacts(rejected=cause.final, message=cause.message)


def _newest(pods: tuple[Object, ...]) -> Object | None:
    return max(
        pods,
        key=lambda pod: (not is_deleted(pod), pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]),
        default=None,
    )


def _not_created(view: RunView) -> Cause:
    refusals = [event for event in _events(view, JOB.kind, view.name) if event.get("reason") == "FailedCreate"]
    if refusals:
        words = refusals[-1].get("message", "")
        return Cause(words, "exceeded quota" not in words and bool(_FINAL_REFUSALS.search(words)))
    return Cause("the Job has no pod yet")


def _ended(pod: Object, _view: RunView) -> Cause | None:
    status = pod.get("status") or {}
    ended = _state(pod, SWEEPER).get("terminated")
    if ended is not None:
        return Cause(_last_words(SWEEPER, ended))
    if status.get("phase") == "Failed":
        return Cause(_joined(status.get("reason"), status.get("message")) or "the pod failed")
    return None


def _unschedulable(pod: Object, _view: RunView) -> Cause | None:
    for found in (pod.get("status") or {}).get("conditions") or ():
        if found["type"] == "PodScheduled" and found["status"] == "False":
            return Cause(_joined(found.get("reason"), found.get("message")))
    return None


def _publisher_crashes(pod: Object, _view: RunView) -> Cause | None:
    container = _container(pod, PUBLISHER)
    last = (container.get("state") or {}).get("terminated") or (container.get("lastState") or {}).get("terminated")
    crashes = container.get("restartCount", 0)
    if last is None or "running" in _state(pod, SWEEPER):
        return None
    waiting = _state(pod, PUBLISHER).get("waiting", {})
    words = _joined(_last_words(PUBLISHER, last), _joined(waiting.get("reason"), waiting.get("message")), by="; ")
    return Cause(words, final=crashes >= MOST_PUBLISHER_CRASHES)


def _container_waits(pod: Object, _view: RunView) -> Cause | None:
    for name in (PUBLISHER, SWEEPER):
        waiting = _state(pod, name).get("waiting")
        if waiting is not None and (reason := waiting.get("reason", "")) not in _NO_NEWS and reason:
            return Cause(f"{name}: {_joined(reason, waiting.get('message'))}", final=reason in _FINAL_WAITS)
    return None


def _volume_missing(pod: Object, view: RunView) -> Cause | None:
    if "running" in _state(pod, PUBLISHER):
        return None
    for event in reversed(list(_events(view, POD.kind, pod["metadata"]["name"]))):
        if event.get("reason") in ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"):
            return Cause(_joined(event["reason"], event.get("message")))
    return None


_POLICIES: tuple[Callable[[Object, RunView], Cause | None], ...] = (
    _ended,
    _unschedulable,
    _publisher_crashes,
    _container_waits,
    _volume_missing,
)


def _events(view: RunView, kind: str, name: str) -> Iterator[Object]:
    """Yield the Events about one object, oldest first."""
    about = [
        event
        for event in view.events
        if event["involvedObject"].get("kind") == kind and event["involvedObject"].get("name") == name
    ]
    yield from sorted(about, key=lambda event: (_time(event), event["metadata"]["name"]))


def _time(event: Object) -> str:
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp", "")
    )


def _container(pod: Object, name: str) -> dict[str, Any]:
    status = pod.get("status") or {}
    every = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((found for found in every if found["name"] == name), {})


def _state(pod: Object, name: str) -> dict[str, Any]:
    return _container(pod, name).get("state") or {}


def _last_words(name: str, ended: dict[str, Any]) -> str:
    how = _joined(ended.get("reason"), f"exit code {ended.get('exitCode')}", by=", ")
    return f"{name} ended: {_joined(how, (ended.get('message') or '').strip())}"


def _joined(*texts: str | None, by: str = ": ") -> str:
    return by.join(text for text in texts if text)
