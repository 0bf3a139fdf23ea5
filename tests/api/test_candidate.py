"""Candidate, ReplaySpec and the events: what contradicts itself is refused."""

import json
from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.candidate import Candidate, EvaluatedCandidate
from dgdr_api.events import BranchPlan, Counters, Evaluations, Event, RoundCompleted
from dgdr_api.parse import read
from dgdr_api.replay_spec import ReplaySpec
from dgdr_api.run import BranchProgress, CandidateCounts, Progress, Rounds
from pydantic import TypeAdapter, ValidationError

ENGINE = {
    "maxNumSeqs": 256,
    "maxNumBatchedTokens": 8192,
    "blockSize": 64,
    "numGpuBlocks": 16384,
    "maxSequenceLength": 3300,
    "enablePrefixCaching": True,
}
QUANTIZATION = dict.fromkeys(("gemm", "moe", "kv", "attention", "communication"), "bfloat16")


def role(kind: str, **changes: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "workers": 2,
        "gpusPerWorker": 4,
        "backend": "vllm",
        "sku": "h200_sxm",
        "engineVersion": "0.26.0",
        "dataVersion": "0.24.0",
        "shape": {"tp": 4},
        "quantization": QUANTIZATION,
        "memoryFraction": 0.92,
        "engine": ENGINE,
        "timing": {"type": "polynomial"},
    } | changes


def replay_spec(**changes: Any) -> dict[str, Any]:
    return {
        "topology": "disagg",
        "roles": [role("prefill"), role("decode")],
        "workload": {"static": {"isl": 3000, "osl": 300, "concurrency": 64}},
    } | changes


def evaluated(spec: ReplaySpec) -> dict[str, Any]:
    return {
        "id": "0" * 16,
        "candidate": wire(Candidate.of_replay_spec(spec, model="m", parameters={"concurrency": 64})),
        "replaySpec": wire(spec),
        "evaluation": {
            "score": 1.0,
            "usedGpus": spec.used_gpus,
            "objectives": {"throughput": 1.0},
            "metrics": {},
            "memory": {"decode": {"weightsGiB": 1.0, "kvTokens": 5}},
            "provenance": {"silicon": 1.0},
        },
    }


def test_a_replay_spec_counts_its_gpus() -> None:
    assert ReplaySpec.model_validate(replay_spec()).used_gpus == 16


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topology": "agg"}, "roles are prefill, decode; agg with encoder Inline has agg"),
        ({"encoder": "Disaggregated"}, "has prefill, decode, encode"),
        ({"roles": [role("decode"), role("prefill")]}, "roles are decode, prefill"),
        ({"roles": [role("prefill", gpusPerWorker=8), role("decode")]}, "gpusPerWorker = 8, but the shape tp4 takes 4"),
        ({"workload": {}}, "exactly one of static and trace"),
    ],
)
def test_a_replay_spec_that_contradicts_itself(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ReplaySpec.model_validate(replay_spec(**changes))


def test_the_evaluated_thing_is_the_published_thing() -> None:
    spec = ReplaySpec.model_validate(replay_spec())
    good = evaluated(spec)

    assert wire(EvaluatedCandidate.model_validate(good))["candidate"] == good["candidate"]

    more = evaluated(spec)
    more["candidate"]["roles"][1]["workers"] = 3
    with pytest.raises(ValidationError, match="scores another deployment"):
        EvaluatedCandidate.model_validate(more)
    miscounted = evaluated(spec)
    miscounted["evaluation"]["usedGpus"] = 8
    with pytest.raises(ValidationError, match=r"usedGpus = 8, but the candidate takes 16"):
        EvaluatedCandidate.model_validate(miscounted)


NULLS = {
    "planner": None,
    "kvTransfer": {
        "bandwidthGBps": None,
        "bytesPerToken": None,
        "latencyMs": 0,
        "mode": "fullPrompt",
        "contention": False,
    },
    "sla": {"ttftMs": None, "itlMs": None, "e2eMs": None},
}


def test_a_replay_spec_writes_the_names_that_others_read_with_null_where_nothing_is_set() -> None:
    spec = ReplaySpec.model_validate(replay_spec())

    for written in (wire(spec), json.loads(spec.model_dump_json(exclude_none=True)), evaluated(spec)["replaySpec"]):
        assert {name: written[name] for name in NULLS} == NULLS
        assert ReplaySpec.model_validate(written) == spec
        assert read(ReplaySpec, written) == spec


@pytest.mark.parametrize("load", [{"requestRate": 2.5}, {"saturated": True}, {"concurrency": 8, "requests": 100}])
def test_a_replay_spec_names_concurrency_and_requests_whatever_the_load(load: dict[str, Any]) -> None:
    spec = ReplaySpec.model_validate(replay_spec(workload={"static": {"isl": 1, "osl": 1} | load}))

    written = wire(spec)["workload"]

    assert set(written) == {"static"}
    assert written["static"]["concurrency"] == load.get("concurrency")
    assert written["static"]["requests"] == load.get("requests")
    assert ("requestRate" in written["static"]) == ("requestRate" in load)
    assert ReplaySpec.model_validate({**replay_spec(), "workload": written}) == spec


def test_what_is_set_in_a_replay_spec_is_written_once() -> None:
    changes = {"planner": {"mode": "sla"}, "sla": {"e2eMs": 9000.0}, "kvTransfer": {"bandwidthGBps": 50.0}}
    spec = ReplaySpec.model_validate(replay_spec(**changes))

    written = wire(spec)

    assert written["planner"]["mode"] == "sla"
    assert written["sla"] == {"ttftMs": None, "itlMs": None, "e2eMs": 9000.0}
    assert written["kvTransfer"]["bandwidthGBps"] == 50.0
    assert wire(spec, given_only=True)["sla"] == {"e2eMs": 9000.0}


def test_a_candidate_document_holds_the_names_of_its_replay_spec() -> None:
    document = wire(EvaluatedCandidate.model_validate(evaluated(ReplaySpec.model_validate(replay_spec()))))

    assert {name: document["replaySpec"][name] for name in NULLS} == NULLS
    assert wire(EvaluatedCandidate.model_validate(document)) == document


@pytest.mark.parametrize("count", [2**31, 2**53 - 1])
def test_pools_and_counters_are_wider_than_32_bits(count: int) -> None:
    plan = BranchPlan(name="vllm/disagg", backend="vllm", topology="disagg", pool=count)
    counters = Counters(scheduled=count, pruned=count, remaining=count)

    assert BranchProgress(name=plan.name, rounds=Rounds(completed=count, total=count), pool=plan.pool).pool == count
    assert Progress(evaluations=counters).evaluations.pruned == count
    assert CandidateCounts(pareto_front=count, unrenderable=count).pareto_front == count
    assert RoundCompleted(branch="b", round=count, total=count, counters=counters, reserve=()).total == count


def test_a_count_that_a_double_cannot_hold_is_refused() -> None:
    for wrong in (2**53, -1):
        with pytest.raises(ValidationError):
            Counters(scheduled=wrong)
        with pytest.raises(ValidationError):
            BranchPlan(name="b", backend="vllm", topology="agg", pool=wrong)


def test_an_event_is_read_by_its_type() -> None:
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    line = {
        "seq": 1,
        "attempt": "laptop",
        "runUid": "u",
        "time": "2026-01-01T00:00:00Z",
        "type": "search.failed",
        "data": {"reason": "SearchFailed", "message": "said", "counters": {}},
    }

    assert wire(adapter.validate_python(line))["data"]["message"] == "said"
    with pytest.raises(ValidationError, match="union_tag_invalid"):
        adapter.validate_python(line | {"type": "search.paused"})
    with pytest.raises(ValidationError):
        adapter.validate_python(line | {"seq": 0})


def test_columns_of_a_batch_have_one_length() -> None:
    batch = {
        "branch": "vllm/agg",
        "id": ["a", "b"],
        "status": ["feasible", "infeasible"],
        "reason": [None, "gpu_budget"],
        "detail": ["", "9 > 8"],
        "usedGpus": [8, 9],
        "summary": ["x", "y"],
        "metrics": {"ttftMs": [1.0, None]},
        "objectives": {},
    }

    assert len(Evaluations.model_validate(batch).id) == 2
    with pytest.raises(ValidationError, match=r"column metrics\.ttftMs has 1 entries, id has 2"):
        Evaluations.model_validate(batch | {"metrics": {"ttftMs": [1.0]}})
