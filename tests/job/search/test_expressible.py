"""What a backend cannot be started with is not searched, and the report says why."""

from dataclasses import replace

import pytest
from dgdr_api import expressible
from dgdr_api.versions import table
from dgdr_job.catalog.catalog import Catalog

from tests.job.search.runs import run, search


def test_shapes_that_the_engine_cannot_put_side_by_side_are_skipped_with_the_reason(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = replace(table(), equal_tp={"sglang": ("0.5.16",)})
    monkeypatch.setattr(expressible, "table", lambda: listed)
    told = search(run("sglang", search={"topologies": ["disagg"]}), catalog)
    assert told.reserve
    for each in told.reserve:
        assert len({role.shape.tp for role in each.candidate.roles}) == 1
    skipped = [row for row in told.rows if "they must be equal" in row["detail"]]
    assert {row["reason"] for row in skipped} == {"backend_topology"}
    assert len(skipped) == 5 * 4
    counters = told.completed.counters
    assert counters.scheduled == counters.feasible + counters.infeasible + counters.unsupported + counters.pruned
