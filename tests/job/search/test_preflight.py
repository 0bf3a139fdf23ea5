"""Coverage of tuples: supported with its data, or one reason."""

import pytest
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.search.preflight import mean_shares

from tests.job.search.runs import run, search


def test_a_supported_tuple_names_its_data(catalog: Catalog) -> None:
    coverage = search(run(), catalog).resolved.coverage
    assert [(each.backend, each.topology, each.reason) for each in coverage] == [
        ("vllm", "agg", "Supported"),
        ("vllm", "disagg", "Supported"),
    ]
    assert coverage[1].skus == {"prefill": "h200_sxm", "decode": "h200_sxm"}
    for each in coverage:
        assert (each.supported, each.data_version, each.message) == (True, "0.24.0", "")
        assert each.shares is not None
        assert sum(each.shares.model_dump().values()) == pytest.approx(1, abs=1e-5)
        assert each.shares.silicon > 0.5


def test_one_topology_can_be_refused_alone(catalog: Catalog) -> None:
    told = search(run(hardware={"gpu": {"budget": 1}}), catalog)
    assert [(each.topology, each.reason) for each in told.resolved.coverage] == [
        ("agg", "Supported"),
        ("disagg", "BudgetTooSmall"),
    ]
    assert [plan.name for plan in told.resolved.branches] == ["vllm/agg"]
    assert told.completed.outcome == "SearchSucceeded"


def test_shares_are_weighted_means() -> None:
    measured, formula = SourceShares(1.0, 0.0, 0.0, 0.0), SourceShares(0.0, 1.0, 0.0, 0.0)
    assert mean_shares([measured, formula]).model_dump(by_alias=False) == {
        "silicon": 0.5,
        "empirical": 0.5,
        "estimated": 0.0,
        "borrowed": 0.0,
    }
    assert mean_shares([measured, formula], [3.0, 1.0]).silicon == 0.75
