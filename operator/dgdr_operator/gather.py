"""From the store to a snapshot: which objects belong to which request."""

import re
from collections import Counter
from collections.abc import Mapping

from dgdr_api.group import ANNOTATION_CANCEL, ANNOTATION_REQUEST_NAME, LABEL_RUN_UID, REQUEST_KIND
from dgdr_kube.resource import Object, Resource

from dgdr_operator.job_facts import is_finished
from dgdr_operator.kinds import EVENT, JOB, POD, REQUEST, RUN, controller_of, controller_uid, is_deleted
from dgdr_operator.queue import Key
from dgdr_operator.settings import Settings
from dgdr_operator.snapshot import Refusal, RunView, Snapshot, Turn
from dgdr_operator.store import Kept, Store
from dgdr_operator.turns import Waiting, turns

_OF_A_RUN = re.compile(r"-run-[0-9]+-[0-9a-f]{4}(-|$)")
"""In the name of a run, of its Job, and of the Job's pods."""


def _run_uid(value: Object) -> str:
    return str((value["metadata"].get("labels") or {}).get(LABEL_RUN_UID, ""))


def _without_spec(value: Object) -> Object:
    """Leave out what only the kubelet reads: the spec, and the copy of the run in a pod's annotation."""
    meta = value["metadata"]
    annotations = meta.get("annotations") or {}
    kept = {name: annotations[name] for name in (ANNOTATION_REQUEST_NAME,) if name in annotations}
    return {name: item for name, item in value.items() if name != "spec"} | {"metadata": {**meta, "annotations": kept}}


KINDS: Mapping[Resource, Kept] = {
    REQUEST: Kept(lambda _: ""),
    RUN: Kept(controller_uid),
    JOB: Kept(controller_uid, _without_spec),
    POD: Kept(_run_uid, _without_spec),
    EVENT: Kept(lambda event: str(event["involvedObject"].get("uid", ""))),
}
"""What the operator watches and keeps of the cluster."""


def new_store() -> Store:
    """Return an empty store of everything that the operator watches."""
    return Store(KINDS)


def concerns_us(resource: Resource, value: Object) -> bool:
    """Whether an object is worth keeping: of Jobs, pods and Events only what a run has to do with."""
    if resource in (JOB, POD):
        return bool(_run_uid(value))
    if resource == EVENT:
        about = value["involvedObject"]
        ours = about.get("kind") in (JOB.kind, POD.kind) and bool(_OF_A_RUN.search(about.get("name", "")))
        return ours and value.get("type") == "Warning"
    return True


def request_key(resource: Resource, value: Object, store: Store) -> Key | None:
    """Return the request that an object has to do with, if it says so."""
    namespace = value["metadata"]["namespace"]
    if resource == REQUEST:
        return namespace, value["metadata"]["name"]
    if resource == RUN:
        owner = controller_of(value)
        return None if owner is None or owner["kind"] != REQUEST_KIND else (namespace, owner["name"])
    if resource == EVENT:
        about = value["involvedObject"]
        kind = JOB if about.get("kind") == JOB.kind else POD
        found = store.get(kind, namespace, about.get("name", ""))
        return None if found is None else request_key(kind, found, store)
    name = (value["metadata"].get("annotations") or {}).get(ANNOTATION_REQUEST_NAME)
    return None if name is None else (namespace, name)


def snapshot_of(
    key: Key,
    store: Store,
    settings: Settings,
    *,
    now: str,
    refusals: Mapping[str, Refusal],
    reserved: Mapping[str, str],
) -> Snapshot | None:
    """Return what is known about a request; None when there is none of that name.

    Args:
        key: namespace and name of the request.
        store: the state of the cluster.
        settings: limits on searches at the same time.
        now: RFC 3339 in UTC.
        refusals: what the API server would not take, by uid of the request or run that it was made for.
        reserved: namespace by uid of each run whose Job is being created just now.
    """
    request = store.get(REQUEST, *key)
    if request is None:
        return None
    uid = request["metadata"]["uid"]
    runs = [run for run in store.by(RUN, uid) if not is_deleted(run)]
    given = _turns(store, settings, reserved)
    views = [_view(run, store, given, refusals) for run in runs]
    views.sort(key=lambda view: (view.generation, view.run["metadata"]["creationTimestamp"], view.name), reverse=True)
    return Snapshot(now=now, request=request, runs=tuple(views), refusal=refusals.get(uid))


def _view(run: Object, store: Store, given: Mapping[str, Turn], refusals: Mapping[str, Refusal]) -> RunView:
    uid = run["metadata"]["uid"]
    job = next(iter(store.by(JOB, uid)), None)
    pods = store.by(POD, uid)
    about = [value["metadata"]["uid"] for value in ((job,) if job is not None else ()) + pods]
    return RunView(
        run=run,
        job=job,
        pods=pods,
        events=tuple(event for each in about for event in store.by(EVENT, each)),
        turn=given.get(uid, Turn()),
        refusal=refusals.get(uid),
    )


def waiting_runs(store: Store) -> tuple[Object, ...]:
    """Return the runs that will have a Job and have none yet."""
    return tuple(run for run in store.all(RUN) if _waits(run, store))


def _waits(run: Object, store: Store) -> bool:
    view = RunView(run=run)
    asked_to_end = ANNOTATION_CANCEL in (run["metadata"].get("annotations") or {})
    return not (view.done or view.had_job or asked_to_end or is_deleted(run) or store.by(JOB, run["metadata"]["uid"]))


def _turns(store: Store, settings: Settings, reserved: Mapping[str, str]) -> dict[str, Turn]:
    if not settings.searches_per_namespace and not settings.searches_in_cluster:
        return {}
    searching = Counter(job["metadata"]["namespace"] for job in store.all(JOB) if not is_finished(job))
    searching.update(namespace for uid, namespace in reserved.items() if not store.by(JOB, uid))
    waiting = [
        Waiting(meta["creationTimestamp"], meta["namespace"], meta["name"], meta["uid"])
        for meta in (run["metadata"] for run in waiting_runs(store))
        if meta["uid"] not in reserved
    ]
    return turns(
        waiting,
        searching,
        per_namespace=settings.searches_per_namespace,
        in_cluster=settings.searches_in_cluster,
    )
