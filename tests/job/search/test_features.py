"""Each thing that a request can ask for and this version does not do is refused by its field and value."""

from typing import Any

import pytest
from dgdr_api.run import RunSpec
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.features import not_built, parameters_not_built
from dgdr_job.search.mapper import search_config

from tests.job.search.runs import run, search, unbound

REPLAY: dict[str, Any] = {
    "search": {"fidelity": "replay"},
    "workload": {"static": {"saturated": None, "concurrency": 8}},
}
PVC = {"pvc": {"claimName": "traces", "path": "mooncake.jsonl"}}

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (REPLAY, "search.fidelity", "replay"),
    (
        {"search": {"fidelity": "replay"}, "workload": {"static": None, "trace": {"source": PVC}}},
        "workload.trace",
        "mooncake",
    ),
    ({"search": {"planner": {"mode": "load"}}}, "search.planner", "load"),
    ({"search": {"router": [{"mode": "roundRobin"}, {"mode": "kv"}]}}, "search.router[1].mode", "kv"),
    ({"search": {"router": [{"mode": "roundRobin"}, {"overlapCredit": 0.5}]}}, "search.router", "2 choices"),
    ({"objective": {"metric": "goodput"}}, "objective.metric", "goodput"),
    ({"objective": {"metric": "goodputPerGpu"}}, "objective.metric", "goodputPerGpu"),
    (
        {"objective": {"metric": "throughputPerUser"}, "workload": {"static": {"osl": 1}}},
        "objective.metric",
        "throughputPerUser",
    ),
    (
        {"objective": {"mode": "pareto", "metric": None}, "workload": {"static": {"osl": 1}}},
        "objective.metrics",
        "throughputPerUser",
    ),
    ({"workload": {"static": {"lengthSpread": 0.5}}}, "workload.static.lengthSpread", "0.5"),
    (
        {"workload": {"static": {"sharedPrefixRatio": 0.25, "prefixGroups": 2}}},
        "workload.static.sharedPrefixRatio",
        "0.25",
    ),
    ({"workload": {"static": {"turnsPerSession": 3}}}, "workload.static.turnsPerSession", "3"),
    ({"workload": {"static": {"turnHistory": "accumulate"}}}, "workload.static.turnHistory", "accumulate"),
    ({"overrides": {"dgd": {"spec": {}}}}, "overrides.dgd", "spec"),
    ({"search": {"budget": {"maxRounds": 2}}}, "search.budget.maxRounds", "2"),
    ({"search": {"budget": {"candidatesPerRound": 8}}}, "search.budget.candidatesPerRound", "8"),
]


@pytest.mark.parametrize(("changes", "field", "value"), REFUSED, ids=[f"{case[1]}={case[2]}" for case in REFUSED])
def test_refused_by_name_and_value(changes: dict[str, Any], field: str, value: str, catalog: Catalog) -> None:
    spec: RunSpec = run(**changes)
    found = not_built(spec)
    found = [each for each in found if each.field == field] if field == "workload.trace" else found
    assert [(each.field, each.value) for each in found] == [(field, value)]
    assert found[0].message.startswith(f"{field}: {value} is not supported: ")
    told = search(spec, catalog)
    assert told.completed.outcome == "Unsupported"
    assert found[0].message in told.completed.message
    assert told.resolved.branches == ()
    assert [(each.supported, each.reason) for each in told.resolved.coverage] == [(False, "UnsupportedFeature")] * 2


PARAMETERS_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"search_space": {"nextn": 1}}, "search_space.nextn", "1"),
    ({"search_space": {"kv_transfer_bandwidth": 50}}, "search_space.kv_transfer_bandwidth", "50.0"),
    ({"sweep": {"max_trials": 100}}, "sweep.max_trials", "100"),
    ({"sweep": {"strategy": "guided"}}, "sweep.strategy", "guided"),
]


@pytest.mark.parametrize(("parameters", "key", "value"), PARAMETERS_REFUSED)
def test_an_engine_key_that_a_static_search_has_no_use_for_is_refused(
    parameters: dict[str, Any], key: str, value: str, catalog: Catalog
) -> None:
    told = search(run(search={"parameters": parameters}), catalog)
    assert told.completed.outcome == "Unsupported"
    assert told.completed.message.startswith(f"{key}: {value} is not supported: ")
    assert [(each.supported, each.reason) for each in told.resolved.coverage] == [(False, "UnsupportedFeature")] * 2


def test_what_a_static_search_keeps_anyway_is_taken() -> None:
    kept = run(search={"budget": {"parallelEvaluations": 4, "maxEvaluationDuration": "1s"}})
    assert not_built(kept) == []
    for strategy in ("auto", "exhaustive"):
        spec = run(search={"parameters": {"sweep": {"strategy": strategy}}})
        assert parameters_not_built(search_config(spec, {"vllm": "0.24.0"})) == []


def test_what_is_built_is_not_refused() -> None:
    assert not_built(run()) == []
    assert not_built(unbound(search={"router": [{"mode": "roundRobin"}]})) == []
    assert not_built(run(hardware={"gpu": {"prefillSku": "H200", "decodeSku": "h200_sxm"}})) == []
    assert not_built(run(hardware={"gpu": {"prefillSku": "H100", "decodeSku": "GB200"}})) == []


def test_several_are_all_named_in_one_message(catalog: Catalog) -> None:
    spec = run(search={"planner": {"mode": "load"}}, workload={"static": {"lengthSpread": 0.5}})
    message = search(spec, catalog).completed.message
    assert "search.planner: load" in message
    assert "workload.static.lengthSpread: 0.5" in message
