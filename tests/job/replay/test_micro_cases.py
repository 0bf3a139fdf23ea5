"""Fourteen exact timelines of Dynamo 1.6.1's replay."""

import json
from pathlib import Path
from typing import Any

import pytest
from dgdr_job.replay.outcome import COMPLETED, Outcome
from dgdr_job.replay.reference.cluster import replay
from dgdr_job.replay.spec_plan import plan_of
from dgdr_job.replay.workload import requests_of

from tests.job.replay.peer_cases import document

CASES: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "micro_cases.json").read_text())


def rows(outcome: Outcome) -> list[dict[str, float]]:
    """What the peer says of each request, by its names."""
    made = []
    for at in range(outcome.count):
        gaps = outcome.last_token_ns[at] - outcome.first_token_ns[at]
        made.append(
            {
                "arrival_time_ms": outcome.arrival_ns[at] / 1e6,
                "first_admit_ms": outcome.admitted_ns[at] / 1e6,
                "first_token_ms": outcome.first_token_ns[at] / 1e6,
                "last_token_ms": outcome.last_token_ns[at] / 1e6,
                "e2e_latency_ms": (outcome.last_token_ns[at] - outcome.arrival_ns[at]) / 1e6,
                "reused_input_tokens": float(outcome.reused_tokens[at]),
                "readmission_count": float(outcome.preemptions[at]),
                "total_gap_ms": gaps / 1e6,
            }
        )
    return made


@pytest.mark.parametrize("name", CASES)
def test_a_micro_case_is_equal_to_the_peer(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    spec = document(case, tmp_path / "trace.jsonl")
    outcome = replay(plan_of(spec, tmp_path), requests_of(spec, tmp_path))
    ours, theirs = rows(outcome), case["expected"]["per_request"]
    assert len(ours) == len(theirs)
    assert list(outcome.status) == [COMPLETED] * len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        for key in mine.keys() & other.keys():
            assert mine[key] == pytest.approx(other[key], abs=1e-9), (key, mine, other)
        if "itl_ms" in other:
            gap = mine["total_gap_ms"] / (other["output_length"] - 1)
            assert gap == pytest.approx(other["itl_ms"], abs=1e-9)
    end = outcome.last_token_ns.max() - outcome.arrival_ns.min()
    assert end / 1e6 == pytest.approx(case["expected"]["duration_ms"], abs=1e-9)
    reused = outcome.reused_tokens.sum() / sum(line["input_length"] for line in case["trace"])
    assert reused == pytest.approx(case["expected"]["prefix_cache_reused_ratio"], abs=1e-9)
