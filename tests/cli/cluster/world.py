"""A namespace with requests, runs and candidates, written as operator and publisher write them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgdr_api import reasons
from dgdr_api.base import wire
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.completion import Completion, phase
from dgdr_api.conditions import condition
from dgdr_api.parse import request_of
from dgdr_api.reasons import Reason
from dgdr_api.run import DynamoGraphDeploymentRun, RunStatus
from dgdr_api.run_object import run_of
from dgdr_kube.client import KubeClient
from dgdr_kube.errors import NotFound, Stale
from dgdr_kube.resource import Object, Resource
from dgdr_operator.kinds import REQUEST
from dgdr_publisher.cluster.kinds import CANDIDATE, RUN
from dgdr_publisher.cluster.store import ClusterStore
from dgdr_publisher.publication import final_publication
from dgdr_publisher.resources import run_identity
from dgdr_publisher.search_state import SearchState, advance, all_batches

from tests.api.objects import request
from tests.publisher.samples import AGG, DISAGG, NOW, events, spec


class Nothing:
    """A journal that keeps nothing."""

    def append_event(self, event: object) -> None:
        pass


@dataclass(frozen=True)
class Published:
    """A run with candidates."""

    run: str
    candidates: tuple[str, ...]
    """Names, best first."""


@dataclass(frozen=True)
class World:
    """The hands of user, operator and publisher in one namespace."""

    namespace: str
    user: KubeClient
    operator: KubeClient
    publisher: KubeClient

    def request(self, name: str = "qwen", *changes: tuple[str, Any]) -> dict[str, Any]:
        """Create a request."""
        made = request(*changes) | {"metadata": {"name": name, "namespace": self.namespace}}
        return self.user.create(REQUEST, made)

    def answer(self, reason: Reason | None, message: str = "", *, name: str = "qwen", **status: Any) -> None:
        """Say what the operator says about the current generation of a request."""
        generation = self.get(REQUEST, name)["metadata"]["generation"]
        found = {"observedGeneration": generation, **status}
        if reason is not None:
            found["conditions"] = [wire(condition(reason, message, now=NOW, generation=generation))]
        self._apply_status(self.operator, REQUEST, name, found)

    def run(self, request: Mapping[str, Any] | None = None) -> DynamoGraphDeploymentRun:
        """Create the run of a request's generation, with the spec that the samples' candidates answer."""
        asked = request_of(request or self.request())
        body = wire(run_of(asked, spec()))
        return DynamoGraphDeploymentRun.model_validate(self.operator.create(RUN, body))

    def publish(
        self,
        of: DynamoGraphDeploymentRun,
        *found: EvaluatedCandidate,
        logs: Mapping[str, Sequence[str]] | None = None,
        outcome: str = "SearchSucceeded",
    ) -> Published:
        """Publish a whole search as the publisher does, up to the outcome."""
        found = found or (DISAGG, AGG)
        state = SearchState(status=of.status or RunStatus())
        for event in events(*found, of=of, outcome=outcome):
            state = advance(state, event, "optimize", NOW)
        publication = final_publication(of, run_identity(of), state)
        store = ClusterStore(self.publisher, of, Nothing())
        store.write_candidates(publication.candidates or ())
        store.write_points(all_batches(state), publication.points, keep=state.reserve)
        if logs is not None:
            store.report.write_logs(logs, {"attempts": ["a"]})
        store.write_run(of.model_copy(update={"status": publication.status}))
        names = tuple(ref.name for ref in publication.status.candidate_refs)
        return Published(of.metadata.name, names)

    def stand(self, run: str, reason: Reason = reasons.SEARCH_SUCCEEDED, message: str = "") -> None:
        """Say where a run stands, or how it ended, as the operator does."""
        status = {
            "phase": phase(Completion(reason, message)),
            "conditions": [wire(condition(reason, message, now=NOW))],
        }
        self._apply_status(self.operator, RUN, run, status)

    def progress(self, run: str, **status: Any) -> None:
        """Write a part of a run's status, as a publisher in the middle of a search."""
        self._apply_status(self.publisher, RUN, run, status)

    def ended(self, reason: Reason = reasons.SEARCH_SUCCEEDED) -> Published:
        """A request with a run that has ended with two candidates."""
        of = self.run()
        found = self.publish(of, logs={"sweeper": ["started", "ended"], "publisher": ["wrote"]})
        self.stand(found.run, reason, "2 candidates")
        self.answer(reasons.RUN_CREATED, f"run {found.run}", recentRunRefs=[{"name": found.run}])
        return found

    def get(self, resource: Resource, name: str) -> dict[str, Any]:
        return self.user.get(resource, self.namespace, name)

    def names(self, resource: Resource) -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.user.list(resource, self.namespace).items)

    def has(self, resource: Resource, name: str) -> bool:
        try:
            return bool(self.get(resource, name))
        except NotFound:
            return False

    def label(self, candidate: str, label: str, value: str) -> None:
        """Change a label of a candidate, as somebody with too many rights."""
        patch = {"metadata": {"labels": {label: value}}}
        self.user.merge_patch(CANDIDATE, self.namespace, candidate, patch)

    def delete(self, resource: Resource, name: str) -> None:
        uid = self.get(resource, name)["metadata"]["uid"]
        self.user.delete(resource, self.namespace, name, uid=uid, propagation="Background")

    def copy_of(self, resource: Resource, name: str, **changes: Any) -> dict[str, Any]:
        """Delete an object and create it anew: another uid, the same name; parts of its metadata or spec changed."""
        found = self.get(resource, name)
        self.delete(resource, name)
        meta = found["metadata"]
        kept = {
            key: meta[key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences") if key in meta
        }
        body = json.loads(json.dumps({**found, "metadata": kept | changes.pop("metadata", {}), **changes}))
        status = body.pop("status", None)
        made = self.user.create(resource, body)
        if status is not None:
            self._apply_status(self.user, resource, name, status)
        return made

    def _apply_status(self, kube: KubeClient, resource: Resource, name: str, status: Mapping[str, Any]) -> None:
        while True:
            meta = self.get(resource, name)["metadata"]
            value: Object = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name, "namespace": self.namespace},
                "status": status,
            }
            try:
                kube.apply_status(resource, value, uid=meta["uid"], resource_version=meta["resourceVersion"])
            except Stale:
                continue
            return
