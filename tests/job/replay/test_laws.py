"""What holds for every replay, whatever is drawn."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dgdr_job.replay.errors import InvalidTiming
from dgdr_job.replay.outcome import COMPLETED, Outcome
from dgdr_job.replay.pass_times import FIXED, PassTimes
from dgdr_job.replay.plan import Plan
from dgdr_job.replay.reference import cluster as reference
from dgdr_job.replay.replaying import replay
from dgdr_job.replay.requests import Requests
from dgdr_job.replay.spec_plan import plan_of
from dgdr_job.replay.workload import requests_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.replay.random_plans import plans, workloads
from tests.job.replay.specs import aggregated, static

ALL = ("vllm", "trtllm", "sglang")
LAWS = settings(max_examples=150, deadline=None)


@LAWS
@given(plans(ALL, (False, True)), workloads())
def test_every_request_ends_once_and_in_order(plan: Plan, requests: Requests) -> None:
    outcome = replay(plan, requests)
    assert np.all(outcome.status > 0), "a request was lost"
    done = outcome.status == COMPLETED
    assert np.all(outcome.arrival_ns <= np.where(done, outcome.admitted_ns, outcome.arrival_ns))
    assert np.all(outcome.admitted_ns[done] <= outcome.first_token_ns[done])
    assert np.all(outcome.first_token_ns[done] <= outcome.last_token_ns[done])
    assert np.all(outcome.first_token_ns[~done] == -1)
    held = [plan.cause_of_rejection(int(i), int(o)) is None for i, o in zip(requests.isl, requests.osl, strict=True)]
    assert np.array_equal(done, held), "exactly those that no worker holds are rejected"


@LAWS
@given(plans(ALL, (False, True)), workloads())
def test_tokens_are_conserved_and_memory_is_bounded(plan: Plan, requests: Requests) -> None:
    outcome = replay(plan, requests)
    counted = (outcome.status == COMPLETED) & (np.arange(len(requests)) >= requests.warmup)
    assert outcome.gaps.count == int((requests.osl[counted] - 1).sum())
    spans = (outcome.last_token_ns - outcome.first_token_ns)[counted]
    assert outcome.gaps.total_ns == int(spans.sum())
    for role, blocks, running in zip(plan.roles, outcome.peak_blocks, outcome.peak_running, strict=True):
        assert blocks <= role.num_blocks
        assert running <= role.max_num_seqs
    if requests.concurrency and np.all(requests.next_turn < 0):
        assert most_in_flight(outcome) <= requests.concurrency


def most_in_flight(outcome: Outcome) -> int:
    done = outcome.status == COMPLETED
    events = [(int(time), 1) for time in outcome.arrival_ns[done]] + [(int(t), -1) for t in outcome.last_token_ns[done]]
    running = most = 0
    for _, change in sorted(events, key=lambda event: (event[0], event[1])):
        running += change
        most = max(most, running)
    return most


@LAWS
@given(plans(ALL), workloads())
def test_a_replay_is_the_same_again(plan: Plan, requests: Requests) -> None:
    first, second = replay(plan, requests), replay(plan, requests)
    assert np.array_equal(first.last_token_ns, second.last_token_ns)
    assert np.array_equal(first.gaps.bins, second.gaps.bins)


@LAWS
@given(plans(ALL), workloads(), st.integers(2, 5))
def test_times_scale_exactly(plan: Plan, requests: Requests, factor: int) -> None:
    def timed(by: int) -> Plan:
        roles = tuple(
            replace(role, times=PassTimes(FIXED, 3.0 * by, 2.0 * by, host_overhead_ns=7 * by)) for role in plan.roles
        )
        return replace(plan, roles=roles, transfer=replace(plan.transfer, ms_per_token=0.5 * by, latency_ms=1.5 * by))

    at_once = replace(requests, arrival_ns=np.zeros_like(requests.arrival_ns), think_ns=0)
    once, more = replay(timed(1), at_once), replay(timed(factor), at_once)
    done = once.status == COMPLETED
    assert np.array_equal(more.last_token_ns[done], once.last_token_ns[done] * factor)
    assert np.array_equal(more.first_token_ns[done], once.first_token_ns[done] * factor)


@pytest.mark.parametrize("milliseconds", [float("nan"), float("inf"), -1.0, 1e12])
@pytest.mark.parametrize("engine", [replay, reference.replay])
def test_a_pass_without_a_time_is_a_named_error(
    engine: Callable[[Plan, Requests], Outcome], milliseconds: float
) -> None:
    spec = aggregated(static(isl=10, osl=3, concurrency=1, requests=2))
    plan = plan_of(spec, Path())
    wrong = replace(plan, roles=(replace(plan.roles[0], times=PassTimes(FIXED, 1.0, milliseconds)),))
    with pytest.raises(InvalidTiming):
        engine(wrong, requests_of(spec, Path()))
