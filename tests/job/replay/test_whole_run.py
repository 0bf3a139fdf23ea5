"""The whole-run figures of engine.md 7.1, from Dynamo 1.6.1."""

from pathlib import Path

import numpy as np
import pytest
from dgdr_job.replay.outcome import Outcome
from dgdr_job.replay.reference.cluster import replay
from dgdr_job.replay.spec_plan import plan_of
from dgdr_job.replay.workload import requests_of

from tests.job.replay.specs import aggregated, static


def mean_ms(values: np.ndarray) -> float:
    return float(np.mean(values)) / 1e6


def check(outcome: Outcome) -> None:
    ttft = outcome.first_token_ns - outcome.arrival_ns
    e2e = outcome.last_token_ns - outcome.arrival_ns
    assert mean_ms(ttft) == pytest.approx(331.482260, abs=1e-6)
    assert mean_ms((e2e - ttft) / 299) == pytest.approx(27.196089, abs=1e-6)
    assert mean_ms(e2e) == pytest.approx(8463.112997, abs=1e-6)
    assert outcome.last_token_ns.max() / 1e6 == pytest.approx(133579.605746, abs=1e-6)


def test_the_whole_run_is_equal_to_the_peer(tmp_path: Path) -> None:
    spec = aggregated(static(isl=3000, osl=300, concurrency=64, requests=1000))
    check(replay(plan_of(spec, tmp_path), requests_of(spec, tmp_path)))
