"""The engine as a program: numbered events."""

import pytest
from dgdr_api.errors import InvalidRequest, VersionChainBroken
from dgdr_api.events import Event, EventData
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.main import EventWriter, sweep
from dgdr_job.search.sweep import Progress
from pydantic import TypeAdapter

from tests.job.search.runs import run

EVENT: TypeAdapter[Event] = TypeAdapter(Event)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Catalog(DiskCache(tmp_path_factory.mktemp("main")))


def test_events_are_numbered_typed_and_survive_json(catalog: Catalog) -> None:
    sent: list[Event] = []
    writer = EventWriter(sent.append, attempt="laptop", run_uid="uid-1", now=lambda: "2026-01-02T03:04:05Z")
    sweep(run(search={"topologies": ["agg"]}), writer, catalog=catalog)
    assert [each.seq for each in sent] == list(range(1, len(sent) + 1))
    assert {(each.attempt, each.run_uid, each.time) for each in sent} == {("laptop", "uid-1", "2026-01-02T03:04:05Z")}
    kinds = [each.type for each in sent]
    assert (kinds[0], kinds[-2], kinds[-1]) == ("search.resolved", "round.completed", "search.completed")
    assert set(kinds[1:-2]) == {"evaluations", "candidate"}
    for each in sent:
        assert EVENT.validate_json(each.model_dump_json()) == each


def test_a_failure_is_an_event_too() -> None:
    from dgdr_api.events import Counters, Failed  # noqa: PLC0415

    sent: list[Event] = []
    writer = EventWriter(sent.append, attempt="a", run_uid="u", now=lambda: "2026-01-02T03:04:05Z")
    writer(Failed(reason="Bug", message="why", counters=Counters()))
    assert (sent[0].type, sent[0].seq) == ("search.failed", 1)


def test_progress_ends_at_its_total(catalog: Catalog) -> None:
    seen: list[Progress] = []
    sweep(run(), lambda _: None, catalog=catalog, progress=seen.append)
    assert [each.stage for each in seen[:2]] == ["preflight vllm/agg", "preflight vllm/disagg"]
    counted = [each for each in seen if each.total]
    assert [each.done for each in counted] == list(range(1, 16))
    assert (counted[-1].done, counted[-1].total) == (15, 15)
    assert counted[-1].best.startswith("throughputPerGpu ")


def test_wrong_parameters_and_a_broken_chain_are_raised_before_any_event() -> None:
    told: list[EventData] = []
    with pytest.raises(InvalidRequest, match=r"search\.parameters\.sweep\.seeds: is no key"):
        sweep(run(search={"parameters": {"sweep": {"seeds": 1}}}), told.append)
    with pytest.raises(VersionChainBroken, match=r"9\.9\.9"):
        sweep(run(runtime={"image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:9.9.9"}), told.append)
    assert told == []
