"""What must hold of a plan, seen on snapshots that a calm cluster hardly ever has."""

from typing import Any

from dgdr_kube.resource import Object
from dgdr_operator.kinds import JOB, REQUEST, RUN
from dgdr_operator.plan import Create, Delete, Plan
from dgdr_operator.reconcile import reconcile
from dgdr_operator.snapshot import RunView, Snapshot

from tests.operator.world import JOBS, NAME, NAMESPACE, NOW, World


def snapshot(generations: int, *, live: set[int]) -> Snapshot:
    """Return a request at rest in its last generation, with one run for each, of which some are live."""
    world = World()
    world.submit()
    world.settle()
    request, run = world.request(), world.run()
    request["metadata"]["generation"] = generations
    views = [view(run, number, live=number in live) for number in range(generations, 0, -1)]
    return Snapshot(now=NOW, request=request, runs=tuple(views))


def view(run: dict[str, Any], generation: int, *, live: bool) -> RunView:
    labels = run["metadata"]["labels"] | {"sweeper.dgdr.dev/generation": str(generation)}
    metadata = run["metadata"] | {"name": f"qwen-run-{generation}-0000", "uid": str(generation), "labels": labels}
    said = run["status"]["conditions"][0]
    ended = said if live else said | {"status": "True", "reason": "SearchSucceeded"}
    made: Object = run | {"metadata": metadata, "status": {"conditions": [ended]}}
    return RunView(run=made)


def deleted(plan: Plan) -> list[str]:
    return [step.value["metadata"]["name"] for step in plan.steps if isinstance(step, Delete)]


def test_the_history_never_takes_a_run_that_has_not_ended() -> None:
    plan = reconcile(snapshot(13, live={1}), JOBS)

    assert deleted(plan) == ["qwen-run-2-0000", "qwen-run-3-0000"]


def test_of_two_live_runs_the_newest_stays() -> None:
    plan = reconcile(snapshot(2, live={1, 2}), JOBS)

    made = [step.value["metadata"]["name"] for step in plan.steps if isinstance(step, Create) and step.resource == JOB]
    assert made == ["qwen-run-2-0000"]


def test_a_run_that_is_being_deleted_is_left_to_its_end() -> None:
    world = World()
    world.submit()
    world.settle()
    name = world.run()["metadata"]["name"]
    world.kube.change(RUN, NAMESPACE, name, metadata={"deletionTimestamp": NOW})
    world.kube.remove(JOB, NAMESPACE, name)

    assert [write for write in world.settle() if RUN.kind in write or JOB.kind in write] == []
    assert "recentRunRefs" not in world.request()["status"]


def test_nothing_is_done_for_a_request_that_is_being_deleted() -> None:
    world = World()
    world.submit()
    world.kube.change(REQUEST, NAMESPACE, NAME, metadata={"deletionTimestamp": NOW})

    assert world.settle() == []
