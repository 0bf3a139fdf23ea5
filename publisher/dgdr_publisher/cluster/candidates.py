"""The candidates of one run in the cluster: what is there, what is missing, what is dropped."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dgdr_api.base import wire
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.canonical import canonical_json
from dgdr_api.group import LABEL_RUN_UID
from dgdr_kube.errors import AlreadyExists, NotFound, Stale
from dgdr_kube.kube import Kube

from dgdr_publisher.cluster.kinds import CANDIDATE
from dgdr_publisher.cluster.translation import translated
from dgdr_publisher.errors import BusyError, RefusedError
from dgdr_publisher.resources import RunIdentity

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Held:
    """A candidate as the cluster holds it."""

    uid: str
    resource_version: str
    status: str
    """Canonical JSON."""


class ClusterCandidates:
    """Creates, describes and deletes the candidates of a run; each request is sent only when it changes something.

    Creation and status are two requests. The status subresource does not look at the uid, so what is meant is said
    by the resourceVersion that was read with it.
    """

    def __init__(self, kube: Kube, run: RunIdentity) -> None:
        self._kube, self._run = kube, run
        self._held: dict[str, _Held] = {}

    @property
    def names(self) -> frozenset[str]:
        """Names of the candidates that are there."""
        return frozenset(self._held)

    def load(self) -> None:
        """Read what is there.

        Raises:
            BusyError: the cluster cannot answer now.
            RefusedError: it refuses.
        """
        with translated():
            listing = self._kube.list(CANDIDATE, self._run.namespace, label_selector=f"{LABEL_RUN_UID}={self._run.uid}")
        self._held = {
            item["metadata"]["name"]: _held(item)
            for item in listing.items
            if "deletionTimestamp" not in item["metadata"]
        }

    def write(self, candidates: Sequence[DynamoGraphDeploymentCandidate]) -> None:
        """Create those that are missing, then write the status of each.

        Raises:
            BusyError: the cluster cannot take it now; what was written stays.
            RefusedError: it refuses.
        """
        for candidate in candidates:
            if candidate.metadata.name not in self._held:
                self._create(candidate)
        for candidate in candidates:
            self._describe(candidate)

    def delete_others(self, names: Collection[str]) -> None:
        """Delete the candidates that are not among these names.

        Raises:
            BusyError: the cluster cannot do it now.
            RefusedError: it refuses.
        """
        for name in sorted(self._held.keys() - set(names)):
            self.delete(name)

    def delete(self, name: str) -> None:
        """Delete a candidate of this run; one that is gone already is no error.

        Raises:
            BusyError: the cluster cannot do it now.
            RefusedError: it refuses.
        """
        held = self._held.pop(name, None)
        if held is None:
            return
        try:
            with translated():
                self._kube.delete(CANDIDATE, self._run.namespace, name, uid=held.uid, propagation="Background")
        except BusyError as error:
            if isinstance(error.__cause__, NotFound | Stale):  # gone, or another one that is not ours
                return
            self._held[name] = held
            raise
        _log.info("candidate deleted", extra={"candidate": name})

    def _create(self, candidate: DynamoGraphDeploymentCandidate) -> None:
        body = wire(candidate)
        body.pop("status", None)
        name = candidate.metadata.name
        try:
            with translated():
                self._held[name] = _held(self._kube.create(CANDIDATE, body))
        except BusyError as error:
            if not isinstance(error.__cause__, AlreadyExists):
                raise
            self._adopt(name, body)
        _log.info("candidate created", extra={"candidate": name})

    def _adopt(self, name: str, body: dict[str, Any]) -> None:
        """Take what an answer that was lost has left; an object of the same name that is another one is refused."""
        with translated():
            found = self._kube.get(CANDIDATE, self._run.namespace, name)
        if "deletionTimestamp" in found["metadata"]:
            raise BusyError(f"candidate {name} is being deleted", conflict=True)
        if (found["metadata"].get("labels") or {}).get(LABEL_RUN_UID) != self._run.uid:
            raise RefusedError(f"candidate {name} exists and belongs to another run than {self._run.name}")
        if canonical_json(found["spec"]) != canonical_json(body["spec"]):
            raise RefusedError(f"candidate {name} exists with another spec")
        self._held[name] = _held(found)

    def _describe(self, candidate: DynamoGraphDeploymentCandidate) -> None:
        if candidate.status is None:
            return
        name, status = candidate.metadata.name, wire(candidate.status)
        held = self._held[name]
        if held.status == canonical_json(status):
            return
        value = {
            "apiVersion": CANDIDATE.api_version,
            "kind": CANDIDATE.kind,
            "metadata": {"name": name, "namespace": self._run.namespace},
            "status": status,
        }
        try:
            with translated():
                found = self._kube.apply_status(CANDIDATE, value, uid=held.uid, resource_version=held.resource_version)
        except BusyError as error:
            if error.conflict:  # changed or gone: whoever tries again reads it first
                self.load()
            raise
        self._held[name] = replace(_held(found), status=canonical_json(status))


def _held(item: dict[str, Any]) -> _Held:
    meta = item["metadata"]
    return _Held(meta["uid"], meta["resourceVersion"], canonical_json(item.get("status") or {}))
