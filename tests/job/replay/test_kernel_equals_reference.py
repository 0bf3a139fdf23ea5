"""The kernel and the reference are equal in every nanosecond, for all policies, with and without pressure."""

import os
from dataclasses import fields

import numpy as np
from dgdr_job.replay.kernel import run as kernel
from dgdr_job.replay.outcome import Outcome
from dgdr_job.replay.plan import Plan
from dgdr_job.replay.reference import cluster as reference
from dgdr_job.replay.requests import Requests
from hypothesis import given, settings

from tests.job.replay.random_plans import plans, workloads

EXAMPLES = int(os.environ.get("EX", "300"))


def assert_equal(ours: Outcome, specified: Outcome) -> None:
    for one in fields(Outcome):
        mine, other = getattr(ours, one.name), getattr(specified, one.name)
        if one.name == "gaps":
            assert np.array_equal(mine.bins, other.bins)
            assert (mine.count, mine.total_ns) == (other.count, other.total_ns)
            assert (mine.least_ns, mine.most_ns) == (other.least_ns, other.most_ns)
        else:
            assert np.array_equal(mine, other), (one.name, mine, other)


@settings(max_examples=EXAMPLES, deadline=None)
@given(plans(("vllm", "trtllm")), workloads())
def test_the_kernel_equals_the_reference(plan: Plan, requests: Requests) -> None:
    assert kernel.supports(plan)
    assert_equal(kernel.replay(plan, requests), reference.replay(plan, requests))
