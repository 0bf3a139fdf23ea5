"""The worked cases of engine.md section 6 with their literal numbers: what the matching says of each."""

from typing import NamedTuple

import numpy as np
import pytest
from dgdr_job.matching import match
from dgdr_job.matching.matched import Matched, concatenate
from dgdr_job.search.points import mean_e2e_ms
from dgdr_job.space.limits import Limits

from tests.job.matching.pools import Row, tuples_of

SATURATED = float("inf")


class Deployment(NamedTuple):
    prefill: int
    decode: int
    encode: int
    gpus: int
    rate: float


def deployments(found: Matched) -> list[Deployment]:
    columns = (found.prefill_workers, found.decode_workers, found.encode_workers, found.gpus, found.rate)
    return [Deployment(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]


def best(row: Row, limits: Limits) -> Deployment:
    """The one with the most throughput per GPU."""
    (found,) = deployments(match.best_deployments(tuples_of([row]), limits, "rate_per_gpu"))
    return found


def frontier(row: Row, limits: Limits) -> list[Deployment]:
    """What no deployment of fewer or as many GPUs equals in rate, by ascending GPUs."""
    every = deployments(concatenate(list(match.all_deployments(tuples_of([row]), limits))))
    kept: list[Deployment] = []
    for each in sorted(every, key=lambda found: (found.gpus, -found.rate)):
        if not kept or each.rate > kept[-1].rate * (1 + 1e-12):
            kept.append(each)
    return kept


def e2e_ms(ttft_ms: float, tpot_ms: float, osl: int) -> float:
    return float(mean_e2e_ms(np.array([ttft_ms]), np.array([tpot_ms]), osl)[0])


class TestW1:
    """isl 1000, osl 100, TTFT within 200 ms and TPOT within 10 ms, 1 to 4 workers of each role."""

    row = Row({"prefill": (1000 / 60, 4), "decode": (20.0, 8), "encode": (0.9 * 80.0, 2)}, 1, SATURATED, 0.0)
    limits = Limits(gpu_budget=1000, max_prefill_workers=4, max_decode_workers=4, max_encode_workers=4)

    def test_the_best_deployment(self) -> None:
        found = best(self.row, self.limits)
        assert found == Deployment(prefill=4, decode=3, encode=1, gpus=42, rate=60.0)
        assert found.rate * 100 / found.gpus == pytest.approx(142.857, abs=0.0005)

    def test_its_latencies(self) -> None:
        ttft = 1.8 * 50 + 1.8 * 60
        assert ttft == 198
        assert e2e_ms(ttft, 8.0, 100) == 990

    def test_the_frontier(self) -> None:
        """Each step adds the worker that binds; four prefill workers end it at 200/3 per second."""
        expected = [(14, 50 / 3), (18, 20.0), (26, 100 / 3), (30, 40.0), (38, 50.0), (42, 60.0), (50, 200 / 3)]
        found = [(each.gpus, each.rate) for each in frontier(self.row, self.limits)]
        assert [gpus for gpus, _ in found] == [gpus for gpus, _ in expected]
        assert [rate for _, rate in found] == pytest.approx([rate for _, rate in expected], rel=1e-12)


class TestW2:
    """Prefill, decode and encode at 10/s each on one GPU, exactly 3 GPUs."""

    row = Row({"prefill": (10.0, 1), "decode": (10.0, 1), "encode": (0.9 * 10.0, 1)}, 1, SATURATED, 0.0)

    def test_the_encoder_is_slowed_down_and_binds(self) -> None:
        limits = Limits(gpu_budget=3, min_gpu_budget=3)
        assert best(self.row, limits) == Deployment(prefill=1, decode=1, encode=1, gpus=3, rate=9.0)
        assert [(each.gpus, each.rate) for each in frontier(self.row, limits)] == [(3, 9.0)]


class TestW4:
    """Aggregated 10/s on 4 GPUs with a TTFT of 100 ms; encoder 80/s in 50 ms on 2 GPUs."""

    row = Row({"decode": (10.0, 4), "encode": (0.9 * 80.0, 2)}, 1, SATURATED, 0.0)

    @pytest.mark.parametrize("budget", [30, 34, 60, 153])
    def test_the_best_deployment(self, budget: int) -> None:
        """Twice as many of both serve as much per GPU: the tie goes to fewer GPUs."""
        found = best(self.row, Limits(gpu_budget=budget))
        assert found == Deployment(prefill=0, decode=7, encode=1, gpus=30, rate=70.0)

    def test_five_encoders_are_used_to_the_full(self) -> None:
        """36 * 10 = 5 * 72 on 154 GPUs: 2.338 per GPU instead of 2.333."""
        found = best(self.row, Limits(gpu_budget=512))
        assert found == Deployment(prefill=0, decode=36, encode=5, gpus=154, rate=360.0)

    def test_the_frontier(self) -> None:
        found = [(each.gpus, each.rate) for each in frontier(self.row, Limits(gpu_budget=36))]
        assert found[:4] == [(6, 10), (10, 20), (14, 30), (18, 40)]
        assert found[4:] == [(22, 50), (26, 60), (30, 70), (34, 72), (36, 80)]

    def test_the_time_to_first_token(self) -> None:
        """Aggregated workers have no queueing correction: L_encode + ttft."""
        assert e2e_ms(50.0 + 100.0, 0.0, 1) == 150


class TestW8:
    """Aggregated 10/s on 4 GPUs; encoder 8/s on one GPU, of which half is counted."""

    row = Row({"decode": (10.0, 4), "encode": (0.5 * 8.0, 1)}, 1, SATURATED, 0.0)

    def test_one_encoder_leaves_4_per_second(self) -> None:
        limits = Limits(gpu_budget=512, max_decode_workers=1, max_encode_workers=1)
        assert best(self.row, limits) == Deployment(prefill=0, decode=1, encode=1, gpus=5, rate=4.0)

    def test_more_encoders_serve_more_per_gpu(self) -> None:
        found = [(each.gpus, each.rate) for each in frontier(self.row, Limits(gpu_budget=7))]
        assert found == [(5, 4.0), (6, 8.0), (7, 10.0)]

    def test_its_latencies(self) -> None:
        assert e2e_ms(50.0 + 100.0, 10.0, 11) == 250
