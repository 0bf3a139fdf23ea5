"""A large budget makes pools and counters that 32 bits do not hold: they reach the status of the run as they are."""

from pathlib import Path

import pytest
from dgdr_api.events import Completed, Counters, EventData, RoundCompleted
from dgdr_api.run import RunStatus
from dgdr_publisher.directory import DirectoryStore
from dgdr_publisher.publisher import Publisher

from tests.publisher.samples import DISAGG, NOW, numbered, points, resolved, run


@pytest.mark.parametrize("count", [2**31, 2**53 - 1])
def test_counts_of_a_large_search_are_published(tmp_path: Path, count: int) -> None:
    counters = Counters(scheduled=count, feasible=1, pruned=count - 2, infeasible=1)
    space = resolved()
    branch = space.branches[0].model_copy(update={"pool": count})
    end = {"outcome": "SearchSucceeded", "message": "found", "reserve": (DISAGG.id,), "proven_best": True}
    said: list[EventData] = [
        space.model_copy(update={"branches": (branch,)}),
        points(DISAGG),
        DISAGG,
        RoundCompleted(branch=branch.name, round=count, total=count, counters=counters, reserve=(DISAGG.id,)),
        Completed.model_validate(end | {"counters": counters, "pareto_front": count}),
    ]
    of = run()
    publisher = Publisher(of, DirectoryStore(tmp_path), lambda: NOW)

    for event in numbered(said, of):
        publisher.handle(event)

    progress = publisher.status.progress
    assert progress is not None
    assert [(one.pool, one.rounds.completed, one.rounds.total) for one in progress.branches] == [(count, count, count)]
    assert (progress.evaluations.scheduled, progress.evaluations.pruned) == (count, count - 2)
    assert (progress.candidates.pareto_front, progress.candidates.published) == (count, 1)
    assert progress.summary == f"{count}/{count}"


def test_more_version_chains_than_the_status_holds_are_cut(tmp_path: Path) -> None:
    """Three backends on four GPU types (prefill, decode, encode and aggregated workers) are twelve; it holds nine."""
    space = resolved()
    skus = ("h100_sxm", "h200_sxm", "b200_sxm", "l40s")
    links = [
        space.versions[0].model_copy(update={"backend": backend, "sku": sku})
        for backend in ("vllm", "sglang", "trtllm")
        for sku in skus
    ]
    of = run()
    publisher = Publisher(of, DirectoryStore(tmp_path), lambda: NOW)
    for event in numbered([space.model_copy(update={"versions": tuple(links)})], of):
        publisher.handle(event)
    shown = RunStatus.model_validate(publisher.status.model_dump())
    assert [(each.backend, each.sku) for each in shown.versions] == [(each.backend, each.sku) for each in links[:9]]
    bound = next(each for each in shown.conditions if each.type == "VersionBound")
    assert all(f"{each.backend} {each.engine}, data of 0.24.0 on {each.sku}" in bound.message for each in links)
