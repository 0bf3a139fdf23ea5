"""Rows of the peer in our words, and the choice of the best by each rule set."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dgdr_api.shape import Shape

from benchmarks.as_rendered import shape_of
from benchmarks.optima import ours, ours_by_their_rules, summary, theirs, used_gpus, whole_cluster
from benchmarks.works import WORKS, Work

AGG = {
    "tp": "2",
    "pp": "1",
    "dp": "8",
    "moe_tp": "1",
    "moe_ep": "16",
    "cp": "1",
    "bs": "16",
    "tokens/s/gpu_cluster": "5",
}
DISAGG = {
    f"({mark}){name}": value
    for mark, worker in (
        ("p", {"workers": "12", "tp": "1", "pp": "1", "dp": "1", "moe_tp": "1", "moe_ep": "1", "bs": "1"}),
        ("d", {"workers": "3", "tp": "2", "pp": "1", "dp": "1", "moe_tp": "1", "moe_ep": "1", "bs": "116"}),
        ("e", {"workers": "1", "tp": "1", "pp": "1", "bs": "4"}),
    )
    for name, value in worker.items()
}


def test_shapes_of_the_peer() -> None:
    assert shape_of(AGG, "") == Shape(tp=2, attention_dp=8, moe_ep=16)
    assert shape_of(DISAGG, "(d)") == Shape(tp=2)


def test_pools_are_summed_and_told() -> None:
    assert (used_gpus(AGG, "agg"), summary(AGG, "agg")) == (16, "1 x agg tp2-dp8-ep16 b16")
    assert used_gpus(DISAGG, "disagg") == 12 + 3 * 2 + 1
    assert summary(DISAGG, "disagg") == "12 x prefill tp1 b1, 3 x decode tp2 b116, 1 x encode tp1 b4"
    beside = {**AGG, "(a)workers": "2", "(e)workers": "1", "(e)tp": "2", "(e)pp": "1", "(e)bs": "1"}
    assert (used_gpus(beside, "agg"), theirs(beside, "agg").value) == (34, 5.0)


def test_a_pool_without_workers_is_none() -> None:
    without = {**DISAGG, "(e)workers": "0", "(e)tp": "0", "(e)bs": "0"}
    assert used_gpus(without, "disagg") == 18


def test_our_best_by_each_rule_set(tmp_path: Path) -> None:
    columns = {
        "branch": ["vllm/disagg", "vllm/disagg+epd", "vllm/disagg", "vllm/agg", "vllm/disagg"],
        "status": ["feasible", "feasible", "feasible", "feasible", "pruned"],
        "summary": ["few", "at the bound", "many", "other", "pruned"],
        "metrics.ttftMs": [900.0, 1000.0, 950.0, 1.0, 1.0],
        "metrics.tpotMs": [39.0, 39.0, 39.0, 1.0, 1.0],
        "metrics.outputThroughputTokensPerS": [800.0, 3200.0, 1600.0, 9999.0, 9999.0],
        "metrics.outputThroughputTokensPerSPerGpu": [100.0, 300.0, 90.0, 9999.0, 9999.0],
    }
    pq.write_table(pa.table(columns), tmp_path / "points.parquet")
    mine, all_gpus = ours(tmp_path, "disagg"), ours_by_their_rules(WORKS[0], tmp_path, "disagg")
    assert mine is not None
    assert (mine.value, mine.summary) == (300.0, "at the bound")
    assert all_gpus is not None
    assert (all_gpus.value, all_gpus.summary) == (100.0, "many")


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_the_request_says_what_the_work_says(work: Work, tmp_path: Path) -> None:
    text = whole_cluster(work, tmp_path).read_text()
    assert f"name: {work.identities[0].model}\n" in text
    assert f"budget: {work.gpus}\n" in text
    assert f"isl: {work.isl}\n" in text
    assert f"ttftMs: {work.ttft_ms}\n" in text
    assert "metric: throughput\n" in text
    for identity in work.identities:
        assert f"{identity.backend}: {identity.data_version}\n" in text
        assert f"ku: {identity.sku}\n" in text
