"""Each thing that a request can ask for and this version does not do is refused by its field and value."""

from typing import Any

import pytest
from dgdr_api.run import RunSpec
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.features import not_built

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
    (
        {"modelRef": {"config": {"configMap": {"name": "my-config", "key": "config.json"}}}},
        "modelRef.config.configMap",
        "my-config",
    ),
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
