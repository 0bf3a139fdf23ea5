"""A run's objects on a real API server: the order of the writes, their owner, what conflicts and refusals lead to."""

from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.canonical import canonical_json
from dgdr_api.conditions import condition
from dgdr_api.reasons import EVALUATING_CANDIDATES
from dgdr_api.run import DynamoGraphDeploymentRun, RunStatus
from dgdr_kube.client import KubeClient
from dgdr_kube.errors import Forbidden, Invalid, Retryable
from dgdr_kube.resource import CONFIG_MAP
from dgdr_publisher.cluster.kinds import CANDIDATE, RUN
from dgdr_publisher.cluster.owned import owned_status
from dgdr_publisher.cluster.store import ClusterStore, read_run
from dgdr_publisher.errors import BusyError, RefusedError
from dgdr_publisher.publication import Publication, final_publication
from dgdr_publisher.report.reading import read_report
from dgdr_publisher.resources import run_identity
from dgdr_publisher.search_state import SearchState, advance

from tests.publisher.conftest import Create, Observed
from tests.publisher.samples import AGG, DISAGG, NOW, events, points


class Nothing:
    """A journal that keeps nothing."""

    def append_event(self, event: object) -> None:
        pass


def publication(of: DynamoGraphDeploymentRun) -> Publication:
    state = SearchState(status=of.status or RunStatus())
    for event in events(DISAGG, AGG, of=of):
        state = advance(state, event, "optimize", NOW)
    return final_publication(of, run_identity(of), state)


def store_of(kube: Any, of: DynamoGraphDeploymentRun) -> ClusterStore:
    return ClusterStore(kube, of, Nothing())


def test_candidates_are_created_then_described_and_a_repetition_sends_nothing(
    observed: Observed, create_run: Create
) -> None:
    of = create_run()
    found, store = publication(of), store_of(observed, of)
    assert found.candidates is not None
    names = [one.metadata.name for one in found.candidates]
    store.write_candidates(found.candidates)
    assert observed.calls == [
        *(("create", "Candidate", name) for name in names),
        *(("status", "Candidate", name) for name in names),
    ]
    store.write_candidates(found.candidates)
    store.write_candidates(found.candidates)
    assert len(observed.calls) == 4
    for candidate in found.candidates:
        held = observed.get(CANDIDATE, of.metadata.namespace, candidate.metadata.name)
        assert canonical_json(held["spec"]) == canonical_json(candidate.spec)
        assert candidate.status is not None
        assert canonical_json(held["status"]) == canonical_json(wire(candidate.status))
        assert held["metadata"]["ownerReferences"][0]["uid"] == of.metadata.uid
        assert {one["manager"] for one in held["metadata"]["managedFields"]} == {"dgdr-publisher"}


def test_a_new_publisher_finds_what_is_there_and_writes_nothing_twice(observed: Observed, create_run: Create) -> None:
    of = create_run()
    found = publication(of)
    assert found.candidates is not None
    store_of(observed, of).write_candidates(found.candidates)
    observed.calls.clear()
    again = store_of(observed, of)
    again.candidates.load()
    again.write_candidates(found.candidates)
    assert observed.calls == []


def test_what_a_lost_answer_created_is_adopted(observed: Observed, create_run: Create) -> None:
    of = create_run()
    found, store = publication(of), store_of(observed, of)
    assert found.candidates is not None

    def lose(verb: str, resource: object, value: object) -> None:
        if verb == "create":
            raise Retryable("POST", "connection reset")

    observed.lost = lose
    with pytest.raises(BusyError):
        store.write_candidates(found.candidates)
    observed.lost = lambda *_: None
    store.write_candidates(found.candidates)
    assert [call[0] for call in observed.calls] == ["create", "create", "status", "status"]


def test_a_candidate_of_the_same_name_that_is_not_ours_is_refused(
    observed: Observed, operator: KubeClient, create_run: Create
) -> None:
    of = create_run()
    found = publication(of)
    assert found.candidates is not None
    body = wire(found.candidates[0])
    body.pop("status")
    body["metadata"]["labels"] = {}
    body["metadata"].pop("ownerReferences")
    operator.create(CANDIDATE, body)
    with pytest.raises(RefusedError, match="belongs to another run"):
        store_of(observed, of).write_candidates(found.candidates)


def test_a_candidate_that_a_user_changed_or_deleted_is_written_again(
    observed: Observed, operator: KubeClient, create_run: Create
) -> None:
    of = create_run()
    found, store = publication(of), store_of(observed, of)
    assert found.candidates is not None
    bare = [one.model_copy(update={"status": None}) for one in found.candidates]
    store.write_candidates(bare)
    first, second = (one.metadata.name for one in found.candidates)
    held = operator.get(CANDIDATE, of.metadata.namespace, first)
    held["metadata"]["labels"]["a"] = "b"
    operator.replace(CANDIDATE, held)
    with pytest.raises(BusyError) as conflict:
        store.write_candidates(found.candidates)
    assert conflict.value.conflict
    gone = operator.get(CANDIDATE, of.metadata.namespace, second)
    operator.delete(CANDIDATE, of.metadata.namespace, second, uid=gone["metadata"]["uid"], propagation="Background")
    with pytest.raises(BusyError):
        store.write_candidates(found.candidates)
    store.write_candidates(found.candidates)
    assert store.candidates.names == {first, second}
    for name in (first, second):
        assert operator.get(CANDIDATE, of.metadata.namespace, name)["status"]["evaluation"]


def test_status_is_shared_with_the_operator_without_a_conflict(
    observed: Observed, operator: KubeClient, create_run: Create
) -> None:
    of = create_run()
    of_operator: dict[str, Any] = {
        "phase": "Running",
        "startTime": NOW,
        "jobRef": {"name": of.metadata.name},
        "conditions": [wire(condition(EVALUATING_CANDIDATES, "12/12", now=NOW))],
    }

    def as_operator() -> None:
        held = operator.get(RUN, of.metadata.namespace, of.metadata.name)
        value = {
            "apiVersion": RUN.api_version,
            "kind": RUN.kind,
            "metadata": {"name": of.metadata.name, "namespace": of.metadata.namespace},
            "status": of_operator,
        }
        meta = held["metadata"]
        operator.apply_status(RUN, value, uid=meta["uid"], resource_version=meta["resourceVersion"])

    as_operator()
    found = publication(of)
    store = store_of(observed, of)
    store.write_run(of.model_copy(update={"status": found.status}))
    store.write_run(of.model_copy(update={"status": found.status}))
    assert observed.calls == [("status", "Run", of.metadata.name)]
    of_operator["phase"] = "Succeeded"
    as_operator()
    held = operator.get(RUN, of.metadata.namespace, of.metadata.name)["status"]
    assert (held["phase"], held["startTime"], held["outcome"]["reason"]) == ("Succeeded", NOW, "SearchSucceeded")
    assert [one["type"] for one in held["conditions"]] == ["Completed", "Supported", "VersionBound", "Published"]
    assert held["conditions"][0]["reason"] == "EvaluatingCandidates"


def test_the_publisher_owns_nothing_of_the_operators(create_run: Create) -> None:
    owned = owned_status(publication(create_run()).status)
    assert {"phase", "jobRef", "startTime", "completionTime"}.isdisjoint(owned)
    assert [one["type"] for one in owned["conditions"]] == ["Supported", "VersionBound", "Published"]


def test_a_field_that_another_writer_owns_is_reported_and_not_forced(
    observed: Observed, operator: KubeClient, create_run: Create
) -> None:
    of = create_run()
    held = operator.get(RUN, of.metadata.namespace, of.metadata.name)
    meta = {"name": of.metadata.name, "namespace": of.metadata.namespace}
    value = {"apiVersion": RUN.api_version, "kind": RUN.kind, "metadata": meta, "status": {"message": "mine"}}
    operator.apply_status(RUN, value, uid=held["metadata"]["uid"], resource_version=held["metadata"]["resourceVersion"])
    with pytest.raises(RefusedError, match="another writer owns"):
        store_of(observed, of).write_run(of.model_copy(update={"status": publication(of).status}))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Retryable("PATCH", "too many requests", status=429), BusyError),
        (Retryable("PATCH", "etcd", status=503), BusyError),
        (Forbidden("PATCH", "no", status=403), RefusedError),
        (Invalid("PATCH", "field not declared", status=500), RefusedError),
        (Invalid("PATCH", "wrong", status=422), RefusedError),
    ],
)
def test_which_errors_are_tried_again(
    observed: Observed, create_run: Create, error: Exception, expected: type[Exception]
) -> None:
    of = create_run()

    def fail(verb: str, resource: object, value: object) -> None:
        if verb == "status":
            raise error

    observed.fault = fail
    with pytest.raises(expected):
        store_of(observed, of).write_run(of.model_copy(update={"status": publication(of).status}))


def test_a_run_that_was_made_anew_is_not_written(observed: Observed, operator: KubeClient, create_run: Create) -> None:
    of = create_run()
    meta = of.metadata
    assert meta.uid is not None
    operator.delete(RUN, meta.namespace, meta.name, uid=meta.uid, propagation="Background")
    create_run()
    with pytest.raises(RefusedError, match="another one now"):
        store_of(observed, of).write_run(of.model_copy(update={"status": publication(of).status}))


def test_the_report_is_read_back_and_an_equal_checkpoint_is_not_sent_again(
    observed: Observed, create_run: Create
) -> None:
    of = create_run()
    store = store_of(observed, of)
    for _ in range(2):
        store.write_points([points(DISAGG, AGG)], {DISAGG.id: "name"})
    assert observed.calls == [("apply", "ConfigMap", f"{of.metadata.name}-report-0")]
    listed = observed.list(
        CONFIG_MAP, of.metadata.namespace, label_selector=f"sweeper.dgdr.dev/run-uid={of.metadata.uid}"
    )
    report = read_report(listed.items)
    assert report.batches() == (points(DISAGG, AGG),)
    assert report.columns()["publication"] == ["name", None, None]
    assert store_of(observed, of).report.load() == (points(DISAGG, AGG),)


def test_no_run_is_a_refusal(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(RefusedError, match="there is no run absent"):
        read_run(kube, namespace, "absent")
