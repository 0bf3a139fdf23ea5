from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate, MaterializedValue
from dgdr_api.events import Counters, Evaluations, Event, Failed
from dgdr_api.metadata import ObjectMeta
from dgdr_api.run import DynamoGraphDeploymentRun, RunStatus
from dgdr_publisher.errors import EventError, PublisherError, SequenceGapError, StoreError
from dgdr_publisher.publisher import Publisher

from tests.publisher.samples import (
    AGG,
    DISAGG,
    NOW,
    REFUSED,
    evaluated,
    events,
    numbered,
    points,
    resolved,
    role,
    run,
    spec,
)


class Memory:
    """A store that remembers what it was given, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.journal: list[Event] = []
        self.runs: list[DynamoGraphDeploymentRun] = []
        self.candidates: dict[str, DynamoGraphDeploymentCandidate] = {}
        self.best: Mapping[str, Any] | None = None
        self.rows: Sequence[MaterializedValue] = ()
        self.points: Sequence[Evaluations] = ()
        self.publication: Mapping[str, str] = {}

    def append_event(self, event: Event) -> None:
        self.journal.append(event)

    def write_run(self, run: DynamoGraphDeploymentRun) -> None:
        self.calls.append("run")
        self.runs.append(run)

    def write_candidates(self, candidates: Sequence[DynamoGraphDeploymentCandidate]) -> None:
        for candidate in candidates:
            self.calls.append("candidate")
            self.candidates[candidate.metadata.name] = candidate

    def remove_candidate(self, name: str) -> None:
        self.calls.append("remove")
        del self.candidates[name]

    def write_best(self, dgd: Mapping[str, Any], materialization: Sequence[MaterializedValue]) -> None:
        self.calls.append("best")
        self.best, self.rows = dgd, materialization

    def write_points(self, batches: Sequence[Evaluations], publication: Mapping[str, str]) -> None:
        self.calls.append("points")
        self.points, self.publication = tuple(batches), publication


def publish(
    *candidates: EvaluatedCandidate, of: DynamoGraphDeploymentRun | None = None, outcome: str = "SearchSucceeded"
) -> tuple[RunStatus, Memory]:
    of = of or run()
    store = Memory()
    publisher = Publisher(of, store, lambda: NOW)
    for event in events(*candidates, of=of, outcome=outcome):
        assert publisher.handle(event) == event.seq
    assert publisher.done
    assert store.runs[-1].status == publisher.status
    return publisher.status, store


def reasons_of(status: RunStatus) -> dict[str, str]:
    return {one.type: one.reason for one in status.conditions}


def test_a_search_with_candidates() -> None:
    status, store = publish(DISAGG, AGG)
    assert reasons_of(status) == {
        "Supported": "AllTuples",
        "VersionBound": "PerfDataPinned",
        "Published": "AllPublished",
        "Completed": "SearchSucceeded",
    }
    assert status.phase == "Succeeded"
    assert [ref.name for ref in status.candidate_refs] == list(store.candidates)
    assert [one.status.rank for one in store.candidates.values() if one.status] == [1, 2]
    assert status.best is not None
    assert (status.best.display, status.best.used_gpus, status.best.mode) == ("100 tok/s/GPU", 10, "disagg")
    assert status.best.summary == "vllm disagg: 2 x prefill tp1, 4 x decode tp2 on h200_sxm"
    assert store.best is not None
    assert store.best["spec"]["components"][2]["replicas"] == 4
    assert status.progress is not None
    assert status.progress.summary == "12/12"
    assert status.progress.proven_best
    assert status.versions[0].renderer == "vllm-0.26.0/1"
    assert status.provenance is not None
    assert (status.provenance.seed, status.provenance.performance_model_version) == (42, "model 1")


def test_candidates_are_written_before_the_status_that_names_them() -> None:
    _, store = publish(DISAGG, AGG)
    assert store.calls == ["run", "run", "candidate", "candidate", "best", "points", "run"]


def test_one_that_cannot_be_rendered_is_counted_and_the_others_are_published() -> None:
    status, store = publish(REFUSED, DISAGG)
    assert reasons_of(status)["Published"] == "SomeUnrenderable"
    message = next(one.message for one in status.conditions if one.type == "Published")
    assert message.startswith("1 published; ")
    assert "preemption = 'oldest'" in message
    assert status.progress is not None
    assert (status.progress.candidates.published, status.progress.candidates.unrenderable) == (1, 1)
    assert store.publication[REFUSED.id].startswith("not rendered: ")


def test_a_backend_without_a_template_is_counted_and_the_others_are_published() -> None:
    trtllm = evaluated(role("agg", backend="trtllm", version="1.3.0rc22", data="1.3.0rc20"), score=900.0)
    status, store = publish(trtllm, DISAGG)
    assert reasons_of(status)["Published"] == "SomeUnrenderable"
    assert len(store.candidates) == 1
    status, store = publish(trtllm)
    assert reasons_of(status)["Published"] == reasons_of(status)["Completed"] == "NothingRenderable"
    assert store.candidates == {}
    assert list(store.publication) == [trtllm.id]


def test_nothing_renderable_is_an_outcome() -> None:
    status, store = publish(REFUSED)
    assert reasons_of(status)["Published"] == reasons_of(status)["Completed"] == "NothingRenderable"
    assert status.phase == "Succeeded"
    assert status.outcome is not None
    assert "preemption" in status.outcome.message
    assert (store.candidates, store.best) == ({}, None)


def test_nothing_feasible_is_an_outcome() -> None:
    status, store = publish(outcome="NoFeasibleCandidate")
    assert reasons_of(status)["Published"] == "NothingToPublish"
    assert reasons_of(status)["Completed"] == "NoFeasibleCandidate"
    assert (status.candidate_refs, status.best, store.candidates) == ((), None, {})


def test_no_more_than_asked_for() -> None:
    of = run(spec(recommendation={"maxCandidates": 1}))
    _, store = publish(DISAGG, AGG, of=of)
    assert len(store.candidates) == 1


def test_points_of_a_front_have_no_rank_and_the_best_is_the_knee() -> None:
    of = run(spec(objective={"mode": "pareto"}))
    knee = evaluated(role("agg", {"tp": 4}), score=0.9)
    first = evaluated(role("agg", {"tp": 1}), score=0.0)
    status, store = publish(first, knee, of=of)
    assert [one.status.rank for one in store.candidates.values() if one.status] == [None, None]
    assert store.best is not None
    assert status.best is not None
    assert status.best.summary == "vllm agg: 1 x agg tp4 on h200_sxm"
    assert store.best["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]["resources"]["limits"] == {
        "nvidia.com/gpu": "4"
    }


def test_the_best_so_far_of_a_front_is_its_knee() -> None:
    of = run(spec(objective={"mode": "pareto"}))
    publisher = Publisher(of, Memory(), lambda: NOW)
    knee = evaluated(role("agg", {"tp": 4}), score=0.9)
    for event in events(evaluated(role("agg"), score=0.0), knee, of=of)[:-1]:
        publisher.handle(event)
    assert publisher.status.best is not None
    assert publisher.status.best.used_gpus == 4


def test_every_point_goes_to_the_store() -> None:
    _, store = publish(DISAGG, AGG)
    assert store.points == (points(DISAGG, AGG),)
    assert set(store.publication) == {DISAGG.id, AGG.id}


def test_a_failed_search_publishes_nothing_and_keeps_the_points() -> None:
    of, store = run(), Memory()
    publisher = Publisher(of, store, lambda: NOW)
    failed = Failed(reason="KeyError", message="boom", counters=Counters(scheduled=12, failed=1))
    for event in numbered([resolved(), points(DISAGG), DISAGG, failed], of):
        publisher.handle(event)
    assert reasons_of(publisher.status)["Completed"] == "SearchFailed"
    assert (publisher.status.phase, store.candidates) == ("Failed", {})
    assert publisher.status.outcome is not None
    assert publisher.status.outcome.message == "KeyError: boom"
    assert len(store.points) == 1


def test_an_interrupted_search_publishes_what_is_known() -> None:
    of, store = run(), Memory()
    publisher = Publisher(of, store, lambda: NOW)
    for event in events(DISAGG, of=of)[:-1]:
        publisher.handle(event)
    publisher.interrupt("interrupted by the user")
    assert reasons_of(publisher.status)["Completed"] == "Cancelled"
    assert len(store.candidates) == 1
    publisher.interrupt("again")
    assert store.calls.count("candidate") == 1


def test_the_run_is_written_before_its_first_event() -> None:
    of, store = run(), Memory()
    publisher = Publisher(of, store, lambda: NOW)
    publisher.start()
    assert store.calls == ["run"]
    assert (publisher.status.phase, reasons_of(publisher.status)) == ("Running", {"Completed": "Preflight"})
    assert publisher.status.start_time == NOW
    for event in events(DISAGG, of=of):
        publisher.handle(event)
    assert reasons_of(publisher.status)["Completed"] == "SearchSucceeded"


def test_a_failure_from_outside_ends_the_run_and_takes_back_what_it_wrote() -> None:
    class NoRoomForPoints(Memory):
        def write_points(self, *_: object) -> None:
            raise StoreError("no space left")

    of, store = run(), NoRoomForPoints()
    publisher = Publisher(of, store, lambda: NOW)
    *before, last = events(DISAGG, AGG, of=of)
    for event in before:
        publisher.handle(event)
    with pytest.raises(StoreError):
        publisher.handle(last)
    assert len(store.candidates) == 2
    publisher.fail("StoreError: no space left" + "." * 2000)
    assert (publisher.status.phase, reasons_of(publisher.status)["Completed"]) == ("Failed", "SearchFailed")
    assert publisher.status.outcome is not None
    assert publisher.status.outcome.message.startswith("StoreError: no space left")
    assert len(publisher.status.outcome.message) == 1024
    assert (store.candidates, publisher.candidates, publisher.status.candidate_refs) == ({}, (), ())


def test_a_failure_after_the_end_changes_nothing() -> None:
    of, store = run(), Memory()
    publisher = Publisher(of, store, lambda: NOW)
    for event in events(DISAGG, of=of):
        publisher.handle(event)
    publisher.fail("late")
    assert reasons_of(publisher.status)["Completed"] == "SearchSucceeded"
    assert len(store.candidates) == 1


def test_the_best_is_named() -> None:
    of = run(spec(objective={"mode": "pareto"}))
    knee = evaluated(role("agg", {"tp": 4}), score=0.9)
    publisher = Publisher(of, Memory(), lambda: NOW)
    assert publisher.best_name is None
    for event in events(evaluated(role("agg"), score=0.0), knee, of=of):
        publisher.handle(event)
    assert publisher.best_name == publisher.candidates[1].metadata.name


def test_progress_before_the_end() -> None:
    of = run()
    publisher = Publisher(of, Memory(), lambda: NOW)
    taken = events(DISAGG, of=of)
    publisher.handle(taken[0])
    assert reasons_of(publisher.status)["Completed"] == "EvaluatingCandidates"
    assert publisher.status.phase == "Running"
    for event in taken[1:-1]:
        publisher.handle(event)
    assert publisher.status.best is not None
    assert publisher.status.progress is not None
    assert publisher.status.progress.branches[0].rounds.completed == 1
    assert not publisher.done


def test_an_event_that_was_taken_changes_nothing() -> None:
    of, store = run(), Memory()
    publisher = Publisher(of, store, lambda: NOW)
    first, second, *_ = events(DISAGG, of=of)
    publisher.handle(first)
    publisher.handle(second)
    assert publisher.handle(first) == 2
    assert store.journal == [first, second]


def test_a_gap_asks_for_what_is_missing() -> None:
    of = run()
    publisher = Publisher(of, Memory(), lambda: NOW)
    taken = events(DISAGG, of=of)
    publisher.handle(taken[0])
    with pytest.raises(SequenceGapError) as caught:
        publisher.handle(taken[2])
    assert caught.value.expected_seq == 2


def test_another_attempt_starts_at_one_and_counters_never_go_back() -> None:
    of = run()
    publisher = Publisher(of, Memory(), lambda: NOW)
    for event in events(DISAGG, of=of)[:-1]:
        publisher.handle(event)
    again = numbered([resolved(), points()], of, attempt="second")
    with pytest.raises(SequenceGapError):
        publisher.handle(again[1])
    publisher.handle(again[0])
    publisher.handle(again[1])
    assert publisher.status.progress is not None
    assert publisher.status.progress.evaluations.feasible == 3


def test_events_that_cannot_follow_are_refused() -> None:
    of = run()
    publisher = Publisher(of, Memory(), lambda: NOW)
    with pytest.raises(EventError, match=r"before search\.resolved"):
        publisher.handle(numbered([points()], of)[0])
    other = run(name="other")
    with pytest.raises(EventError, match="is of run"):
        publisher.handle(events(of=other)[0])
    taken = events(of=of, outcome="NoFeasibleCandidate")
    for event in taken:
        publisher.handle(event)
    late = numbered([resolved() for _ in taken] + [points()], of)[-1]
    with pytest.raises(EventError, match="after the end"):
        publisher.handle(late)


def test_an_event_that_the_store_does_not_take_is_not_taken() -> None:
    class Full(Memory):
        full = True

        def write_run(self, run: DynamoGraphDeploymentRun) -> None:
            if self.full:
                raise StoreError("no space left")
            super().write_run(run)

    of, store = run(), Full()
    publisher = Publisher(of, store, lambda: NOW)
    first = events(of=of)[0]
    with pytest.raises(StoreError):
        publisher.handle(first)
    store.full = False
    assert publisher.handle(first) == 1


def test_a_run_without_identity_is_refused() -> None:
    with pytest.raises(PublisherError, match="request-uid"):
        Publisher(run().model_copy(update={"metadata": ObjectMeta(name="x", uid="u")}), Memory(), lambda: NOW)


def test_what_the_estimates_leave_out_stands_in_supported() -> None:
    (one,) = resolved().coverage
    left_out = one.model_copy(update={"not_modelled": ("multinode_interconnect",)})
    lacking = one.model_copy(update={"supported": False, "reason": "NoData", "message": "none", "topology": "agg"})
    messages = []
    for coverage in ((left_out,), (left_out, lacking)):
        publisher = Publisher(run(), Memory(), lambda: NOW)
        (event,) = numbered([resolved().model_copy(update={"coverage": coverage})], run())
        publisher.handle(event)
        messages += [each.message for each in publisher.status.conditions if each.type == "Supported"]
    except_ = "vllm/disagg supported except multinode_interconnect"
    assert messages == [f"1 of 1 backends and topologies; {except_}", f"1 of 2; {except_}; vllm/agg NoData: none"]
