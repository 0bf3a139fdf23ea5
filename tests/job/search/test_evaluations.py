"""Rows in batches, and messages."""

import pytest
from dgdr_api.events import Evaluations, TupleCoverage
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search import evaluations
from dgdr_job.search.evaluations import unsupported

from tests.job.search.runs import run, search


def test_many_rows_come_in_batches_in_the_same_order(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = search(run(), catalog)
    monkeypatch.setattr(evaluations, "BATCH_ROWS", 7)
    parts = search(run(), catalog)
    assert parts.rows == whole.rows
    sizes = [len(each.id) for each in parts.data if isinstance(each, Evaluations)]
    assert max(sizes) == 7
    assert len(sizes) > 10


def test_the_rows_of_candidates_are_their_evaluations(catalog: Catalog) -> None:
    told = search(run(), catalog)
    rows = {row["id"]: row for row in told.rows}
    for each in told.reserve:
        assert rows[each.id]["used_gpus"] == each.evaluation.used_gpus
        for role in each.candidate.roles:
            part = f"{role.workers} x {role.kind} {role.shape.label} b{role.engine.max_num_seqs}"
            assert part in rows[each.id]["summary"]


def test_equal_reasons_are_said_once() -> None:
    def refused(topology: str, message: str) -> TupleCoverage:
        return TupleCoverage.model_validate(
            {
                "backend": "vllm",
                "topology": topology,
                "skus": {},
                "supported": False,
                "reason": "NoData",
                "message": message,
            }
        )

    assert unsupported([refused("agg", "none"), refused("disagg", "none")]) == "vllm/agg, vllm/disagg NoData: none"
    assert unsupported([refused("agg", "a"), refused("disagg", "b")]) == "vllm/agg NoData: a; vllm/disagg NoData: b"
    assert len(unsupported([refused("agg", "x" * 1000), refused("disagg", "y" * 1000)])) == 1024
