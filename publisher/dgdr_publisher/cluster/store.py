"""A cluster as the store of one run: the same Protocol as the folder of a laptop."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate, MaterializedValue
from dgdr_api.canonical import canonical_json
from dgdr_api.events import Evaluations, Event
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_kube.errors import NotFound
from dgdr_kube.kube import Kube
from pydantic import ValidationError

from dgdr_publisher.cluster.candidates import ClusterCandidates
from dgdr_publisher.cluster.kinds import RUN
from dgdr_publisher.cluster.owned import owned_status
from dgdr_publisher.cluster.report import ClusterReport
from dgdr_publisher.cluster.translation import translated
from dgdr_publisher.errors import BusyError, RefusedError
from dgdr_publisher.resources import run_identity


class EventLog(Protocol):
    """Where events are journalled: not in the cluster."""

    def append_event(self, event: Event) -> None:
        """Journal an event; after the call it survives a crash."""


class ClusterStore:
    """Holds the candidates, the status and the report of one run.

    Every call brings the cluster to what it is given and sends only what changes something, so each may be repeated.
    Raises BusyError where it may be, RefusedError where repeating it cannot help.
    """

    def __init__(self, kube: Kube, run: DynamoGraphDeploymentRun, journal: EventLog) -> None:
        self._kube, self._journal = kube, journal
        self._identity = run_identity(run)
        self._status = ""
        self.candidates = ClusterCandidates(kube, self._identity)
        self.report = ClusterReport(kube, self._identity)

    def append_event(self, event: Event) -> None:
        """Journal an event on the workspace."""
        self._journal.append_event(event)

    def write_candidates(self, candidates: Sequence[DynamoGraphDeploymentCandidate]) -> None:
        """Create the missing ones, then write the status of each."""
        self.candidates.write(candidates)

    def write_run(self, run: DynamoGraphDeploymentRun) -> None:
        """Write the part of the run's status that the publisher owns."""
        status = {} if run.status is None else owned_status(run.status)
        text = canonical_json(status)
        if text == self._status:
            return
        with translated():
            found = self._kube.get(RUN, self._identity.namespace, self._identity.name)
            uid = found["metadata"]["uid"]
            if uid != self._identity.uid:
                raise RefusedError(f"run {self._identity.name} is another one now: uid {uid}, not {self._identity.uid}")
            value = {
                "apiVersion": RUN.api_version,
                "kind": RUN.kind,
                "metadata": {"name": self._identity.name, "namespace": self._identity.namespace},
                "status": status,
            }
            self._kube.apply_status(RUN, value, uid=uid, resource_version=found["metadata"]["resourceVersion"])
        self._status = text

    def remove_candidate(self, name: str) -> None:
        """Delete a candidate of this run."""
        self.candidates.delete(name)

    def write_best(self, dgd: Mapping[str, Any], materialization: Sequence[MaterializedValue]) -> None:
        """Nothing: in a cluster the best candidate is promoted, and carries its materialization."""

    def write_points(
        self, batches: Sequence[Evaluations], publication: Mapping[str, str], keep: Collection[str] = (), seed: int = 0
    ) -> None:
        """Write the points as shards; those in ``keep`` are never thinned away."""
        self.report.write(batches, publication, keep, seed)


def read_run(kube: Kube, namespace: str, name: str) -> DynamoGraphDeploymentRun:
    """Read the run that is published.

    Raises:
        BusyError: the cluster cannot answer now.
        RefusedError: there is no such run, it may not be read, or is not what this version understands.
    """
    try:
        with translated():
            found = kube.get(RUN, namespace, name)
    except BusyError as error:
        if isinstance(error.__cause__, NotFound):
            raise RefusedError(f"there is no run {name} in namespace {namespace}") from error
        raise
    try:
        return DynamoGraphDeploymentRun.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise RefusedError(f"run {name}: {where}: {first['msg']}") from error
