"""The loop: a key from the queue, a snapshot, a plan, and the cluster is changed. No decision is made here."""

import logging
import threading
import time
from collections.abc import Callable

from dgdr_kube.errors import AlreadyExists, FieldConflict, Forbidden, Invalid, KubeError, NotFound, Stale
from dgdr_kube.kube import Kube
from dgdr_kube.resource import Object, Resource

from dgdr_operator.apply import Executor, StepFailed
from dgdr_operator.gather import KINDS, concerns_us, request_key, snapshot_of, waiting_runs
from dgdr_operator.job_facts import is_finished
from dgdr_operator.kinds import JOB, REQUEST, RUN, is_deleted
from dgdr_operator.metrics import Metrics
from dgdr_operator.plan import Apply, ApplyStatus, Create, Delete, Emit, Plan, Step
from dgdr_operator.queue import Key, WorkQueue
from dgdr_operator.reconcile import reconcile
from dgdr_operator.settings import Settings
from dgdr_operator.snapshot import Refusal, RunView
from dgdr_operator.store import Store

logger = logging.getLogger(__name__)

MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
"""What an object that is not of its form raises: one such object must not stop the others."""


class Controller:
    """Keeps the cluster as the requests ask for.

    Args:
        kube: the cluster.
        store: its known state.
        queue: the requests to look at.
        settings: what this installation decides.
        metrics: where times and errors are counted.
        now: the time, RFC 3339 in UTC.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        store: Store,
        queue: WorkQueue,
        settings: Settings,
        metrics: Metrics,
        now: Callable[[], str],
    ) -> None:
        self._kube, self._store, self._queue = kube, store, queue
        self._settings, self._metrics, self._now = settings, metrics, now
        self._executor = Executor(kube, store, frozenset(KINDS))
        self._refusals: dict[str, Refusal] = {}
        self._reserved: dict[str, str] = {}
        self._deciding = threading.Lock()

    def changed(self, resource: Resource, value: Object) -> None:
        """Take news of an object."""
        if concerns_us(resource, value):
            self._store.put(resource, value)
            self._wake(resource, value)

    def deleted(self, resource: Resource, value: Object) -> None:
        """Take the news that an object is gone."""
        meta = value["metadata"]
        self._store.drop(resource, meta["namespace"], meta["name"], meta["uid"])
        self._refusals.pop(meta["uid"], None)
        if concerns_us(resource, value):
            self._wake(resource, value, gone=True)

    def work(self) -> None:
        """Look at one request after the other until the queue is closed: what each worker thread does."""
        while (key := self._queue.take()) is not None:
            try:
                self.look(key)
            finally:
                self._queue.done(key)

    def look(self, key: Key) -> None:
        """Look at one request once; what fails is tried again later."""
        started = time.perf_counter()
        try:
            self._bring_forward(key)
        except StepFailed as failed:
            self._failed(key, failed)
        except KubeError as error:
            self._metrics.failed(error)
            logger.warning("%s; again in %g s", error, self._retry(key, error), extra=_ids(key))
        except MALFORMED:
            logger.exception("an object is not of its form; again in %g s", self._queue.retry(key), extra=_ids(key))
        else:
            self._queue.forget(key)
        self._metrics.reconcile_seconds.observe(time.perf_counter() - started)

    def _bring_forward(self, key: Key) -> None:
        self._confirm_losses(key)
        now = self._now()
        with self._deciding:
            plan = self._plan(key, now)
            starting = {
                step.owner_uid: key[0] for step in plan.steps if isinstance(step, Create) and step.resource == JOB
            }
            self._reserved |= starting
        try:
            self._executor.do(plan, now)
        finally:
            with self._deciding:
                for uid in starting:
                    self._reserved.pop(uid, None)
        for step in plan.steps:
            if isinstance(step, Create):
                self._refusals.pop(step.owner_uid, None)
                logger.info("created %s %s", step.resource.kind, step.value["metadata"]["name"], extra=_ids(key, step))
        if plan:
            # What was written may be what the next step waits for; an empty plan ends this.
            self._queue.add(key)
            if any(isinstance(step, Create) for step in plan.steps):
                self._wake_waiting()

    def _plan(self, key: Key, now: str) -> Plan:
        snapshot = snapshot_of(
            key, self._store, self._settings, now=now, refusals=self._refusals, reserved=self._reserved
        )
        return Plan() if snapshot is None else reconcile(snapshot, self._settings.job)

    def _confirm_losses(self, key: Key) -> None:
        """Ask for each Job that a live run had and the store has not: a watch may be late, and a loss ends the run."""
        request = self._store.get(REQUEST, *key)
        if request is None:
            return
        for run in self._store.by(RUN, request["metadata"]["uid"]):
            view = RunView(run=run)
            if view.done or not view.had_job or is_deleted(run) or self._store.by(JOB, run["metadata"]["uid"]):
                continue
            try:
                self._store.put(JOB, self._kube.get(JOB, key[0], view.name))
            except NotFound:
                continue

    def _failed(self, key: Key, failed: StepFailed) -> None:
        step, error = failed.step, failed.error
        self._metrics.failed(error)
        if isinstance(step, ApplyStatus | Delete) and isinstance(error, Stale | NotFound):
            self._read_again(step)
        if isinstance(step, Create | Apply) and isinstance(error, Forbidden | Invalid | AlreadyExists):
            name = step.value["metadata"]["name"]
            refusal = Refusal(name, error.message, final=isinstance(error, Invalid))
            if self._refusals.get(step.owner_uid) != refusal:
                self._refusals[step.owner_uid] = refusal
                self._queue.add(key)  # at once, to say so; the same words again wait for their back-off
        if isinstance(error, FieldConflict):
            self._report(step, error)
        level = logging.ERROR if isinstance(error, FieldConflict) else logging.INFO
        logger.log(level, "%s; again in %g s", error, self._retry(key, error), extra=_ids(key, step))

    def _retry(self, key: Key, error: KubeError) -> float:
        return self._queue.retry(key, error.retry_after_s or 0.0)

    def _report(self, step: Step, error: FieldConflict) -> None:
        """Say to whoever looks at the object that another writer holds a field of ours."""
        if isinstance(step, ApplyStatus):
            about = self._store.get(step.resource, step.value["metadata"]["namespace"], step.value["metadata"]["name"])
            if about is not None:
                self._executor.do(Plan((Emit(about, "Warning", "FieldConflict", error.message),)), self._now())

    def _read_again(self, step: ApplyStatus | Delete) -> None:
        known = self._store.get(step.resource, step.value["metadata"]["namespace"], step.value["metadata"]["name"])
        if known is None:
            return
        try:
            self._executor.refresh(step.resource, known)
        except KubeError as error:
            logger.info("%s", error)

    def _wake(self, resource: Resource, value: Object, *, gone: bool = False) -> None:
        key = request_key(resource, value, self._store)
        if key is not None:
            self._queue.add(key)
        if resource == JOB and (gone or is_finished(value)):
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        if not self._settings.searches_per_namespace and not self._settings.searches_in_cluster:
            return
        for run in waiting_runs(self._store):
            key = request_key(RUN, run, self._store)
            if key is not None:
                self._queue.add(key)


def _ids(key: Key, step: Step | None = None) -> dict[str, str]:
    """Return what a log line says about what it concerns."""
    ids = {"namespace": key[0], "request": key[1]}
    if isinstance(step, Create | Apply | ApplyStatus | Delete) and step.resource in (RUN, JOB):
        ids["run"] = step.value["metadata"]["name"]
    return ids
