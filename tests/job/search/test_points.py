"""Formulas of the metrics and the order of ranking."""

import numpy as np
import pytest
from dgdr_api.terms import Metric
from dgdr_job.search.config import Sla
from dgdr_job.search.points import Points, keeps_bounds, metrics, objective, rank_order, score
from hypothesis import given
from hypothesis import strategies as st


def points(rate: float, gpus: int, ttft: float, tpot: float) -> Points:
    return Points(
        prefill_row=np.array([0]),
        decode_row=np.array([0]),
        prefill_workers=np.array([4]),
        decode_workers=np.array([3]),
        encode_row=np.array([-1]),
        encode_workers=np.array([0]),
        gpus=np.array([gpus]),
        cost=np.array([gpus * 2.5]),
        rate=np.array([rate]),
        ttft_ms=np.array([ttft]),
        tpot_ms=np.array([tpot]),
        concurrency=np.array([0]),
    )


W1 = points(60.0, 42, 198.0, 8.0)
"""Worked case W1 of engine.md section 6: 60/s on 42 GPUs, osl 100, ttft 198, tpot 8."""


def test_metrics_of_the_worked_case() -> None:
    columns = {name: values[0] for name, values in metrics(W1, 100).items()}
    assert columns == pytest.approx(
        {
            "ttftMs": 198,
            "tpotMs": 8,
            "e2eMs": 990,
            "requestThroughputPerS": 60,
            "outputThroughputTokensPerS": 6000,
            "outputThroughputTokensPerSPerGpu": 142.857142857,
            "throughputPerUserTokensPerS": 125,
        }
    )


@pytest.mark.parametrize(
    ("metric", "value", "scored"),
    [
        ("throughput", 6000, 6000),
        ("throughputPerGpu", 142.857142857, 142.857142857),
        ("throughputPerUser", 125, 125),
        ("throughputPerCost", 6000 * 3600 / (42 * 2.5), 6000 * 3600 / (42 * 2.5)),
        ("ttft", 198, -198),
        ("e2eLatency", 990, -990),
        ("minGpus", 42, -42),
    ],
)
def test_objectives_and_scores(metric: Metric, value: float, scored: float) -> None:
    found = objective(W1, metrics(W1, 100), metric)
    assert found[0] == pytest.approx(value)
    assert score(found, metric)[0] == pytest.approx(scored)


def test_one_output_token_has_no_rate_per_user() -> None:
    columns = metrics(points(5.0, 1, 50.0, 0.0), 1)
    assert "throughputPerUserTokensPerS" not in columns
    assert columns["e2eMs"][0] == 50.0


def test_goodput_has_no_static_estimate() -> None:
    with pytest.raises(KeyError, match="goodput"):
        objective(W1, metrics(W1, 100), "goodput")


def test_a_missing_number_keeps_no_bound() -> None:
    nan, one = np.array([np.nan]), np.array([1.0])
    assert not keeps_bounds(Sla(ttft_ms=10, itl_ms=10), nan, one, 5)[0]
    assert not keeps_bounds(Sla(e2e_ms=10), one, nan, 5)[0]
    assert keeps_bounds(Sla(), nan, nan, 5)[0]


def test_order_is_by_one_column_after_another_within_the_tie() -> None:
    scores = np.array([1.0, 2.0, 2.0 * (1 + 1e-13), 2.0, 2.0])
    gpus = np.array([1, 4, 2, 2, 2])
    rate = np.array([9.0, 9.0, 5.0, 7.0, 7.0 * (1 - 1e-13)])
    order, tie = rank_order(-scores, gpus, -rate)
    assert (order.tolist(), tie.tolist()) == ([3, 4, 2, 1, 0], [0, 0, 1, 2, 3])


def test_nothing_has_an_empty_order() -> None:
    order, tie = rank_order(np.empty(0), np.empty(0, dtype=np.int64))
    assert (order.tolist(), tie.tolist()) == ([], [])


@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=12))
def test_whole_numbers_order_as_tuples_do(rows: list[tuple[int, int, int]]) -> None:
    order, tie = rank_order(*(np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)))
    assert [rows[i] for i in order.tolist()] == sorted(rows)
    distinct = sorted(set(rows))
    assert tie.tolist() == [distinct.index(rows[i]) for i in order.tolist()]
