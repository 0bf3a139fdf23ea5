"""Publishing on a real API server that fails: the same objects in the end, and never a name of what is not there."""

import random
from pathlib import Path
from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.canonical import canonical_json
from dgdr_api.events import Event
from dgdr_api.group import LABEL_RUN_UID
from dgdr_api.run import DynamoGraphDeploymentRun, RunStatus
from dgdr_kube.client import KubeClient
from dgdr_kube.errors import Forbidden, Invalid, Retryable, Stale
from dgdr_kube.resource import Object, Resource
from dgdr_publisher.cluster.kinds import CANDIDATE, RUN
from dgdr_publisher.cluster.store import ClusterStore, read_run
from dgdr_publisher.search_state import SearchState
from dgdr_publisher.service.ingest import Ingest
from dgdr_publisher.service.journal import Journal
from dgdr_publisher.service.pace import Pace
from dgdr_publisher.service.run_loop import PublishLoop
from dgdr_publisher.service.writer import Writer

from tests.api.test_worst_case_status import worst_run_status
from tests.publisher.conftest import Create, Observed
from tests.publisher.samples import AGG, DISAGG, NOW, REFUSED, events
from tests.publisher.service.conftest import Clock, lines


class Publishing:
    """A publisher on a cluster, stepped by hand."""

    def __init__(self, kube: Observed, of: DynamoGraphDeploymentRun, folder: Path) -> None:
        self.of = read_run(kube, of.metadata.namespace, of.metadata.name)
        self.clock = Clock()
        status = self.of.status or RunStatus()
        self.ingest = Ingest(self.of, Journal(folder / "events.ndjson"), SearchState(status=status), lambda: NOW)
        store = ClusterStore(kube, self.of, Journal(folder / "unused"))
        store.candidates.load()
        pace = Pace(60, self.clock)
        writer = Writer(self.of, store, clock=lambda: NOW, checkpoints=pace, logs=lambda: {"publisher": ["a line"]})
        self.loop = PublishLoop(self.ingest, writer, Pace(5, self.clock), self.clock)
        self.ingest.replay()

    def publish(self, *told: Event) -> None:
        """Take events and write until there is nothing more to write."""
        self.ingest.take(lines(*told))
        while (wait_s := self.loop.wait_s(self.ingest.state)) is not None and not self.loop._done:
            self.clock.seconds += wait_s
            if wait_s == 0:
                self.loop._publish(self.ingest.state)


def held(kube: KubeClient, of: DynamoGraphDeploymentRun) -> tuple[str, str]:
    """Everything that is in the cluster for a run, but for what the server adds."""
    found = kube.list(CANDIDATE, of.metadata.namespace, label_selector=f"{LABEL_RUN_UID}={of.metadata.uid}").items
    candidates = sorted((item["metadata"]["name"], item["spec"], item["status"]) for item in found)
    return canonical_json(candidates), canonical_json(
        kube.get(RUN, of.metadata.namespace, of.metadata.name).get("status", {})
    )


@pytest.mark.parametrize("seed", range(6))
def test_with_errors_and_restarts_everywhere_the_end_is_the_same(
    observed: Observed, kube: KubeClient, create_run: Create, tmp_path: Path, seed: int
) -> None:
    of = create_run()
    whole = events(REFUSED, DISAGG, AGG, of=of)
    Publishing(observed, of, tmp_path / "calm").publish(*whole)
    calm = held(kube, of)
    assert of.metadata.uid is not None
    kube.delete(RUN, of.metadata.namespace, of.metadata.name, uid=of.metadata.uid, propagation="Background")
    for item in kube.list(CANDIDATE, of.metadata.namespace).items:
        meta = item["metadata"]
        kube.delete(CANDIDATE, of.metadata.namespace, meta["name"], uid=meta["uid"], propagation="Background")

    of = create_run()
    whole = events(REFUSED, DISAGG, AGG, of=of)
    generator = random.Random(seed)  # noqa: S311 - a repeatable choice of faults
    kinds = (Retryable("x", "too many", status=429), Retryable("x", "etcd", status=500), Stale("x", "changed"))

    def sometimes(verb: str, resource: Resource, value: Object | str) -> None:
        if generator.random() < 0.3:
            raise generator.choice(kinds)

    def check(verb: str, resource: Resource, value: Object | str) -> None:
        """A status that was just written names only what is there; then its answer may be lost."""
        if verb == "status" and resource is RUN and not isinstance(value, str):
            for ref in value["status"].get("candidateRefs", ()):
                kube.get(CANDIDATE, of.metadata.namespace, ref["name"])
        if generator.random() < 0.2:
            raise kinds[0]

    while True:
        stop = generator.randint(1, len(whole))
        observed.fault = observed.lost = lambda *_: None
        live = Publishing(observed, of, tmp_path / "torn")
        observed.fault, observed.lost = sometimes, check
        live.publish(*whole[:stop])
        assert not live.loop.refused
        if stop == len(whole):
            break
    observed.fault = observed.lost = lambda *_: None
    assert live.ingest.ack_seq == len(whole)
    assert held(kube, of) == calm


@pytest.mark.parametrize("verb", ["create", "status", "apply"])
@pytest.mark.parametrize("error", [Forbidden("POST", "no rights", status=403), Invalid("POST", "wrong", status=422)])
def test_a_refusal_stands_in_the_run(
    observed: Observed, kube: KubeClient, create_run: Create, tmp_path: Path, verb: str, error: Exception
) -> None:
    of = create_run()

    def refuse(asked: str, resource: Resource, value: Object | str) -> None:
        if asked == verb and resource is not RUN:
            raise error

    observed.fault = refuse
    live = Publishing(observed, of, tmp_path)
    live.publish(*events(DISAGG, of=of))
    status = kube.get(RUN, of.metadata.namespace, of.metadata.name)["status"]
    assert status["outcome"]["reason"] == "SearchFailed"
    assert str(error) in status["outcome"]["message"]
    assert live.loop.refused == str(error)
    for ref in status.get("candidateRefs", ()):
        kube.get(CANDIDATE, of.metadata.namespace, ref["name"])


def test_the_worst_status_is_accepted_and_stays_below_32_kib(
    observed: Observed, kube: KubeClient, create_run: Create
) -> None:
    of = create_run()
    text = canonical_json(worst_run_status()).replace("\N{GRINNING FACE}", "\N{CJK UNIFIED IDEOGRAPH-4E00}")
    status = RunStatus.model_validate_json(text)
    store = ClusterStore(observed, of, _Nothing())
    store.write_run(of.model_copy(update={"status": status}))
    found: dict[str, Any] = kube.get(RUN, of.metadata.namespace, of.metadata.name)["status"]
    assert len(canonical_json(found).encode()) < 32 * 1024
    assert len(found["candidateRefs"]) == 50
    assert wire(status)["best"] == found["best"]


class _Nothing:
    def append_event(self, event: Event) -> None:
        pass
