"""The one place that changes the cluster: it does the steps of a plan, and tells the store what came of them."""

import logging

from dgdr_kube.errors import AlreadyExists, KubeError, NotFound
from dgdr_kube.event import build_event
from dgdr_kube.kube import Kube
from dgdr_kube.resource import EVENT, Object, Resource

from dgdr_operator.kinds import FIELD_MANAGER, controller_uid
from dgdr_operator.plan import Apply, ApplyStatus, Create, Delete, Emit, Plan, Step
from dgdr_operator.store import Store, key_of

logger = logging.getLogger(__name__)


class StepFailed(Exception):  # noqa: N818 - says what happened
    """A step of a plan was not done, nor were those after it."""

    def __init__(self, step: Step, error: KubeError) -> None:
        self.step = step
        self.error = error
        super().__init__(str(error))


class Executor:
    """Does plans.

    Args:
        kube: the cluster.
        store: learns at once what was written, so that the next look does not write it again.
        kept: the kinds that the store keeps.
    """

    def __init__(self, kube: Kube, store: Store, kept: frozenset[Resource]) -> None:
        self._kube, self._store, self._kept = kube, store, kept

    def do(self, plan: Plan, now: str) -> None:
        """Do all steps in their order.

        Args:
            plan: what shall be done.
            now: time of the Events, RFC 3339 in UTC.

        Raises:
            StepFailed: the API server did not take a step; what comes after it was not tried.
        """
        for step in plan.steps:
            try:
                self._do(step, now)
            except KubeError as error:
                raise StepFailed(step, error) from error

    def refresh(self, resource: Resource, value: Object) -> None:
        """Read an object again, because what the store holds of it is old.

        Raises:
            KubeError: it cannot be read.
        """
        namespace, name = key_of(value)
        try:
            found = self._kube.get(resource, namespace, name)
        except NotFound:
            self._store.drop(resource, namespace, name, value["metadata"]["uid"])
        else:
            self._store.put(resource, found)

    def _do(self, step: Step, now: str) -> None:
        match step:
            case Create():
                self._create(step)
            case Apply(resource, value):
                self._keep(resource, self._kube.apply(resource, value))
            case ApplyStatus(resource, value, uid, version):
                self._keep(resource, self._kube.apply_status(resource, value, uid=uid, resource_version=version))
            case Delete():
                self._delete(step)
            case Emit():
                self._emit(step, now)

    def _create(self, step: Create) -> None:
        try:
            self._keep(step.resource, self._kube.create(step.resource, step.value))
        except AlreadyExists:
            found = self._kube.get(step.resource, *key_of(step.value))
            if controller_uid(found) != step.owner_uid:
                raise
            self._keep(step.resource, found)  # an answer was lost, or another replica was faster: it is ours

    def _delete(self, step: Delete) -> None:
        namespace, name = key_of(step.value)
        meta = step.value["metadata"]
        try:
            self._kube.delete(
                step.resource,
                namespace,
                name,
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
                propagation=step.propagation,
            )
        except NotFound:
            self._store.drop(step.resource, namespace, name, meta["uid"])
        else:
            self.refresh(step.resource, step.value)

    def _emit(self, step: Emit, now: str) -> None:
        made = build_event(
            step.about, type=step.type, reason=step.reason, message=step.message, now=now, component=FIELD_MANAGER
        )
        try:
            self._kube.create(EVENT, made)
        except AlreadyExists:
            return
        except KubeError as error:
            logger.warning("event not written: %s", error)

    def _keep(self, resource: Resource, value: Object) -> None:
        if resource in self._kept:
            self._store.put(resource, value)
