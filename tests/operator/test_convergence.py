"""Laws of the loop: it comes to rest, rest is rest, and how the news came changes nothing."""

import contextlib
from collections.abc import Callable
from typing import Any

from dgdr_api.group import ANNOTATION_CANCEL
from dgdr_kube.errors import Retryable
from dgdr_kube.resource import Object, Resource
from dgdr_operator.controller import Controller
from dgdr_operator.gather import KINDS
from dgdr_operator.kinds import JOB, RUN, condition_of, generation_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.memory import MemoryKube
from tests.operator.world import NAMESPACE, World

Actions = list[str]


EDITS: dict[str, Callable[[int], tuple[tuple[str, Any], ...]]] = {
    "budget": lambda number: (("hardware.gpu.budget", 4 + number),),
    "same": lambda number: (("image", f"example.org/x:{number}"),),
    "rerun": lambda number: (("rerun", {"reason": str(number)}),),
    "bad": lambda _: (("hardware.gpu.sku", "nothing"),),
    "suspend": lambda _: (("suspend", True),),
    "resume": lambda _: (),
}
"""What a user writes into the request."""
ACTIONS = (*EDITS, "cancel", "pod", "end", "fail", "collect", "lose")


def act(world: World, action: str, number: int) -> None:
    """Let somebody do something, if it can be done now."""
    if action in EDITS:
        world.edit(*EDITS[action](number))
    elif action == "collect":
        world.kube.collect()
    elif runs := world.all(RUN):
        happen(world, action, max(runs, key=generation_of))


def happen(world: World, action: str, run: dict[str, Any]) -> None:
    """Let something happen to the newest run."""
    name, generation = run["metadata"]["name"], generation_of(run)
    has_job = name in world.names(JOB)
    match action:
        case "cancel":
            annotations = run["metadata"]["annotations"] | {ANNOTATION_CANCEL: "no"}
            world.kube.change(RUN, NAMESPACE, name, metadata={"annotations": annotations})
        case "pod" if has_job:
            world.run_pod(generation)
        case "end" if has_job and not ended(run):
            world.end(generation)
        case "fail" if has_job:
            world.finish_job(generation, "Failed", "BackoffLimitExceeded", "limit")
        case "lose" if has_job:
            world.kube.remove(JOB, NAMESPACE, name)


def ended(run: dict[str, Any]) -> bool:
    found = condition_of(run, "Completed")
    return found is not None and found["status"] == "True"


def check(world: World) -> None:
    """What holds of every cluster at rest."""
    runs = world.all(RUN)
    live = [run for run in runs if not ended(run)]
    assert len(live) <= 1
    assert len(runs) <= 10
    busy = [job for job in world.all(JOB) if not job.get("status") and "deletionTimestamp" not in job["metadata"]]
    assert len(busy) <= 1
    status = world.request()["status"]
    assert status.get("activeRunRef") == ({"name": live[0]["metadata"]["name"]} if live else None)
    assert {ref["name"] for ref in status.get("recentRunRefs", ())} == {run["metadata"]["name"] for run in runs}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(ACTIONS), max_size=14))
def test_it_comes_to_rest_and_rest_is_rest(actions: Actions) -> None:
    world = World()
    world.submit()
    world.settle()
    for number, action in enumerate(actions):
        act(world, action, number)
        world.settle()
        assert world.settle() == []
        before = snapshot(world)
        world.now = "2027-01-01T00:00:00Z"
        world.start()
        assert world.settle() == [], "an operator that starts anew has nothing to do"
        assert snapshot(world) == before
        check(world)


def snapshot(world: World) -> dict[Any, Any]:
    return {place: value["metadata"]["resourceVersion"] for place, value in world.kube.objects.items()}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(ACTIONS), max_size=10), st.randoms(use_true_random=False))
def test_news_may_come_late_twice_or_never(actions: Actions, random: Any) -> None:
    """After a list, the cluster is as if every event had come in order: same objects, same status."""
    calm, wild = World(), World()
    for world in (calm, wild):
        world.submit()
        world.settle()
    history: list[tuple[Resource, Object]] = []
    for number, action in enumerate(actions):
        for world in (calm, wild):
            act(world, action, number)
        calm.settle()
        history += [(place[0], value) for place, value in list(wild.kube.objects.items()) if place[0] in KINDS]
        for resource, value in random.sample(history, min(len(history), 8)):
            wild.controller.changed(resource, value)
        work(wild.controller, wild)
        wild.settle()
    assert told(calm) == told(wild)


def work(controller: Controller, world: World) -> None:
    while (key := world.queue.take(timeout_s=0)) is not None:
        controller.look(key)
        world.queue.done(key)


def told(world: World) -> dict[str, Any]:
    """What stands in the cluster, without versions and uids."""
    found: dict[str, Any] = {}
    for resource in (RUN, JOB):
        for value in world.all(resource):
            said = condition_of(value, "Completed")
            found[f"{resource.kind} {value['metadata']['name']}"] = said and (said["status"], said["reason"])
    return found | {"request": world.request()["status"]}


class Flaky(MemoryKube):
    """Every third write fails after it was done, as when an answer is lost."""

    count = 0

    def _store(self, place: Any, value: dict[str, Any], verb: str) -> dict[str, Any]:
        made = super()._store(place, value, verb)
        self.count += 1
        if self.count % 3 == 0 and verb in ("create", "apply", "delete"):
            raise Retryable("WRITE", "the answer was lost")
        return made


def test_lost_answers_make_nothing_twice() -> None:
    world = World()
    world.kube = Flaky("dgdr-operator")
    world.start()
    with contextlib.suppress(Retryable):
        world.submit()
    for _ in range(10):
        world.settle()
    assert len(world.names(RUN)) == len(world.names(JOB)) == 1
    assert world.completed()[:2] == ("False", "Pending")
    assert world.accepted() is not None
