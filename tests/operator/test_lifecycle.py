"""The lifecycle rules, on a cluster in memory: what becomes of requests, runs and Jobs."""

from typing import Any

import pytest
from dgdr_api.group import ANNOTATION_CANCEL
from dgdr_kube.errors import Forbidden, Invalid, KubeError
from dgdr_kube.resource import Object, Resource
from dgdr_operator.kinds import EVENT, JOB, REQUEST, ROLE_BINDING, RUN, SERVICE_ACCOUNT

from tests.kube.memory import MemoryKube
from tests.operator.world import NAME, NAMESPACE, NOW, World


@pytest.fixture
def world() -> World:
    made = World()
    made.submit()
    made.settle()
    return made


def test_a_request_becomes_a_run_and_the_run_a_job(world: World) -> None:
    run = world.run()
    name = run["metadata"]["name"]

    assert world.accepted() == ("True", "RunCreated", f"run {name}")
    assert world.request()["status"] == {
        "observedGeneration": 1,
        "activeRunRef": {"name": name},
        "recentRunRefs": [{"name": name}],
        "conditions": world.request()["status"]["conditions"],
    }
    assert run["metadata"]["ownerReferences"][0]["uid"] == world.request()["metadata"]["uid"]
    assert world.names(JOB) == world.names(SERVICE_ACCOUNT) == world.names(ROLE_BINDING) == [name]
    assert world.job()["metadata"]["ownerReferences"][0]["uid"] == run["metadata"]["uid"]
    assert run["status"]["jobRef"] == {"name": name, "uid": world.job()["metadata"]["uid"]}
    assert run["status"]["phase"] == "Pending"
    assert world.completed() == ("False", "Pending", "the Job has no pod yet")


def test_a_settled_cluster_is_left_alone(world: World) -> None:
    assert world.settle() == []


def test_nothing_but_the_status_of_a_request_is_written() -> None:
    world = World()
    before = world.submit()
    world.settle()

    after = world.request()
    for value in (before, after):
        value["metadata"].pop("resourceVersion")
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"status"}


def test_a_run_goes_through_its_search(world: World) -> None:
    world.run_pod()
    world.settle()
    assert world.completed()[:2] == ("False", "Preflight")

    branches = [{"name": "sglang/agg", "rounds": {"completed": 0, "total": 1}, "pool": 10}]
    evaluations = {"scheduled": 10, "remaining": 4}
    world.publish(progress={"summary": "6/10", "branches": branches, "evaluations": evaluations})
    world.settle()
    assert world.completed() == ("False", "EvaluatingCandidates", "6/10")
    assert world.run()["status"]["phase"] == "Running"

    world.end()
    world.settle()
    status = world.run()["status"]
    assert world.completed() == ("True", "SearchSucceeded", "said")
    assert (status["phase"], status["completionTime"], status["outcome"]["reason"]) == (
        "Succeeded",
        NOW,
        "SearchSucceeded",
    )
    assert "activeRunRef" not in world.request()["status"]
    assert world.settle() == []


def test_the_outcome_ends_a_run_while_its_job_still_stops(world: World) -> None:
    world.publish(outcome={"reason": "NoFeasibleCandidate", "message": "none", "time": NOW})
    world.settle()

    assert world.completed()[:2] == ("True", "NoFeasibleCandidate")
    assert "deletionTimestamp" not in world.job()["metadata"]


def test_what_was_said_at_the_end_is_never_taken_back(world: World) -> None:
    world.end()
    world.settle()
    world.kube.remove(JOB, NAMESPACE, world.run()["metadata"]["name"])

    assert world.settle() == []
    assert world.completed()[1] == "SearchSucceeded"


@pytest.mark.parametrize(
    ("ended", "reason", "words"),
    [
        (("Complete", "", ""), "SearchFailed", "the Job is complete, but the search reported no outcome"),
        (("Failed", "DeadlineExceeded", "too long"), "DeadlineExceeded", "too long"),
        (("Failed", "PodFailurePolicy", "exit code 4"), "SearchFailed", "PodFailurePolicy: exit code 4"),
        (("Failed", "BackoffLimitExceeded", "limit"), "SearchFailed", "BackoffLimitExceeded: limit"),
    ],
)
def test_a_job_that_ends_without_an_outcome(world: World, ended: tuple[str, str, str], reason: str, words: str) -> None:
    world.finish_job(1, *ended)
    world.settle()

    status, found, message = world.completed()
    assert (status, found) == ("True", reason)
    assert words in message


def test_an_outcome_that_the_store_has_not_seen_counts(world: World) -> None:
    world.end()
    job, name = world.job(), world.run()["metadata"]["name"]
    world.start()
    world.relist()
    stale = world.kube.get(RUN, NAMESPACE, name)
    stale["status"].pop("outcome")
    stale["metadata"]["resourceVersion"] = "1"
    world.start()
    for resource, value in ((REQUEST, world.request()), (RUN, stale), (JOB, job)):
        world.controller.changed(resource, value)

    while (key := world.queue.take(timeout_s=0.5)) is not None:
        world.controller.look(key)
        world.queue.done(key)

    assert world.completed()[1] == "SearchSucceeded"


def test_a_deleted_job_ends_the_run_and_is_not_made_again(world: World) -> None:
    world.kube.remove(JOB, NAMESPACE, world.run()["metadata"]["name"])
    world.settle()

    assert world.completed()[:2] == ("True", "SearchFailed")
    assert "was deleted" in world.completed()[2]
    assert world.names(JOB) == []


def test_a_job_that_only_the_store_misses_is_not_lost(world: World) -> None:
    world.relist()
    world.store.replace(JOB, (), "999999")
    world.queue.add((NAMESPACE, NAME))
    key = world.queue.take(timeout_s=0)
    assert key is not None
    world.controller.look(key)

    assert world.completed()[:2] == ("False", "Pending")


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (("hardware.gpu.sku", "h200_sxmm"), "UnknownHardware", "h200_sxm"),
        (("runtime.image", "x/sglang-runtime:9.9.9"), "VersionChainBroken", "9.9.9"),
        (("overrides", {"profilingJob": {"parallelism": 3}}), "InvalidOverride", "profilingJob.parallelism"),
        (("workload.maxSequenceLength", 10), "InvalidSpec", "isl 3000"),
        (("backends", ["tgi"]), "InvalidSpec", "backends"),
    ],
)
def test_a_request_that_may_not_run_never_makes_a_job(change: tuple[str, Any], reason: str, words: str) -> None:
    world = World()
    world.submit(change)
    world.settle()

    accepted = world.accepted()
    assert accepted is not None
    assert accepted[:2] == ("False", reason)
    assert words in accepted[2]
    assert world.names(RUN) == world.names(JOB) == []
    assert world.request()["status"]["observedGeneration"] == 1
    assert [event["reason"] for event in world.all(EVENT)] == [reason]
    assert world.settle() == []


def test_a_corrected_request_runs() -> None:
    world = World()
    world.submit(("hardware.gpu.sku", "nothing"))
    world.settle()
    world.edit()
    world.settle()

    assert world.accepted() == ("True", "RunCreated", f"run {world.run(2)['metadata']['name']}")


def test_a_generation_that_may_not_run_leaves_the_live_run_alone(world: World) -> None:
    world.edit(("hardware.gpu.sku", "nothing"))
    world.settle()

    accepted = world.accepted()
    assert accepted is not None
    assert accepted[:2] == ("False", "UnknownHardware")
    assert world.completed()[0] == "False"
    assert world.request()["status"]["activeRunRef"] == {"name": world.run()["metadata"]["name"]}


def test_a_generation_that_asks_for_the_same_starts_nothing(world: World) -> None:
    world.edit(("image", "example.org/sweeper:2"), ("search", {"budget": {"parallelEvaluations": 7}}))
    world.settle()

    assert len(world.names(RUN)) == 1
    assert world.request()["status"]["observedGeneration"] == 2
    assert world.request()["status"]["conditions"][0]["observedGeneration"] == 2
    assert world.completed()[0] == "False"
    assert world.settle() == []


def test_a_new_generation_supersedes_the_live_run(world: World) -> None:
    first = world.run()["metadata"]["name"]
    world.edit(("hardware.gpu.budget", 8))
    world.settle()
    assert "deletionTimestamp" in world.job()["metadata"]
    assert world.names(RUN) == [first]
    assert world.completed()[0] == "False"
    assert "takes its place" in world.completed()[2]

    world.kube.collect()
    world.settle()
    second = world.run(2)["metadata"]["name"]
    assert world.completed(1) == ("True", "Superseded", f"run {second} took its place")
    assert world.names(JOB) == [second]
    assert world.completed(2)[0] == "False"
    assert world.request()["status"]["activeRunRef"] == {"name": second}
    assert world.request()["status"]["recentRunRefs"] == [{"name": second}, {"name": first}]
    assert world.settle() == []


def test_a_search_that_had_ended_is_not_superseded(world: World) -> None:
    world.end()
    world.edit(("hardware.gpu.budget", 8))
    world.settle()

    assert world.completed(1)[1] == "SearchSucceeded"
    assert world.completed(2)[0] == "False"


def test_a_new_rerun_reason_starts_a_run_and_the_same_one_does_not(world: World) -> None:
    world.end()
    world.settle()
    world.edit(("rerun", {"reason": "new data"}))
    world.settle()
    assert len(world.names(RUN)) == 2
    world.end(2)
    world.settle()

    for changes in ((("image", "example.org/x:2"), ("rerun", {"reason": "new data"})), ()):
        world.edit(*changes)
        world.settle()
    assert len(world.names(RUN)) == 2


def test_a_suspended_request_cancels_its_run_and_goes_on_when_it_is_not(world: World) -> None:
    world.edit(("suspend", True))
    world.settle()
    world.kube.collect()
    world.settle()
    assert world.completed() == ("True", "Cancelled", "the request is suspended")
    assert world.names(JOB) == []
    assert len(world.names(RUN)) == 1

    world.edit()
    world.settle()
    assert world.completed(3)[0] == "False"
    assert len(world.names(JOB)) == 1


def test_a_request_that_goes_on_before_the_old_job_is_gone(world: World) -> None:
    world.edit(("suspend", True))
    world.settle()
    world.edit()
    world.settle()
    world.kube.collect()
    world.settle()

    assert world.completed(1)[1] == "Superseded"
    assert world.names(JOB) == [world.run(3)["metadata"]["name"]]


def test_a_request_that_is_born_suspended_waits() -> None:
    world = World()
    world.submit(("suspend", True))
    world.settle()

    assert world.names(RUN) == []
    assert world.request()["status"] == {"observedGeneration": 1}
    world.edit()
    world.settle()
    assert len(world.names(RUN)) == 1


def test_an_annotation_cancels_a_run_and_nothing_comes_after(world: World) -> None:
    run = world.run()
    annotations = run["metadata"]["annotations"] | {ANNOTATION_CANCEL: "too dear"}
    world.kube.change(RUN, NAMESPACE, run["metadata"]["name"], metadata={"annotations": annotations})
    world.settle()
    assert "deletionTimestamp" in world.job()["metadata"]
    world.kube.collect()
    world.settle()

    assert world.completed() == ("True", "Cancelled", "too dear")
    assert world.names(JOB) == []
    assert world.settle() == []


def test_old_runs_are_pruned_and_never_a_live_one(world: World) -> None:
    for number in range(2, 14):
        world.end(number - 1)
        world.settle()
        world.edit(("rerun", {"reason": f"round {number}"}))
        world.settle()

    assert len(world.names(RUN)) == 10
    refs = [ref["name"] for ref in world.request()["status"]["recentRunRefs"]]
    assert sorted(refs) == world.names(RUN)
    assert refs[0] == world.run(13)["metadata"]["name"]
    assert world.settle() == []


def test_a_run_that_a_user_deletes_does_not_come_back(world: World) -> None:
    world.end()
    world.settle()
    world.kube.remove(RUN, NAMESPACE, world.run()["metadata"]["name"])
    world.settle()

    assert world.names(RUN) == []
    assert "recentRunRefs" not in world.request()["status"]


def test_a_recreated_request_never_adopts_what_the_old_one_left(world: World) -> None:
    left = world.run()
    world.kube.objects.pop((REQUEST, NAMESPACE, NAME))
    world.submit()
    world.settle()

    new = [run for run in world.all(RUN) if run["metadata"]["uid"] != left["metadata"]["uid"]]
    assert len(new) == 1
    assert world.request()["status"]["recentRunRefs"] == [{"name": new[0]["metadata"]["name"]}]


def test_a_foreign_job_of_the_same_name_is_never_taken(world: World) -> None:
    other = World()
    name = world.run()["metadata"]["name"]
    foreign = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE}}
    other.kube.create(JOB, foreign)
    other.submit()
    other.kube.objects[REQUEST, NAMESPACE, NAME]["metadata"]["uid"] = world.request()["metadata"]["uid"]
    other.settle()

    assert other.completed()[:2] == ("False", "Pending")
    assert "exists" in other.completed()[2]
    assert "jobRef" not in other.run()["status"]


class Refusing(MemoryKube):
    """A cluster that does not take Jobs."""

    error: KubeError | None = None
    refused: Resource = JOB

    def create(self, resource: Resource, value: Object, *, dry_run: bool = False) -> dict[str, Any]:
        if self.error is not None and resource == self.refused:
            raise self.error
        return super().create(resource, value, dry_run=dry_run)


def refusing(error: KubeError, refused: Resource = JOB) -> World:
    world = World()
    kube = Refusing("dgdr-operator", world.kube)
    kube.error, kube.refused = error, refused
    world.kube = kube
    world.start()
    world.submit()
    return world


def test_a_job_that_quota_refuses_is_waited_for() -> None:
    world = refusing(Forbidden("POST", "exceeded quota: jobs=1", status=403))
    world.settle()
    assert world.completed() == ("False", "Pending", "exceeded quota: jobs=1")
    assert isinstance(world.kube, Refusing)

    world.kube.error = None
    world.settle()
    assert len(world.names(JOB)) == 1


def test_a_job_that_is_invalid_ends_the_run() -> None:
    world = refusing(Invalid("POST", "tolerations: Invalid value", status=422))
    world.settle()

    assert world.completed() == ("True", "PodRejected", "tolerations: Invalid value")
    assert world.settle() == []


def test_a_run_that_the_api_server_refuses_is_no_loop() -> None:
    world = refusing(Invalid("POST", "spec.x: Too long", status=422), RUN)
    world.settle()

    accepted = world.accepted()
    assert accepted is not None
    assert accepted[:2] == ("False", "InvalidSpec")
    assert "spec.x: Too long" in accepted[2]


def test_a_field_that_another_writer_holds_is_reported_and_not_taken(world: World) -> None:
    run = world.run()
    stolen = {name: run[name] for name in ("apiVersion", "kind", "metadata")} | {"status": {"completionTime": NOW}}
    meta = run["metadata"]
    thief = MemoryKube("somebody-else", world.kube)
    thief.apply_status(RUN, stolen, uid=meta["uid"], resource_version=meta["resourceVersion"])
    world.now = "2026-01-03T00:00:00Z"
    world.end()
    world.settle()

    said = [event["message"] for event in world.all(EVENT) if event["reason"] == "FieldConflict"]
    assert len(said) == 1
    assert "somebody-else" in said[0]
    assert world.run()["status"]["completionTime"] == NOW
    assert world.completed()[0] == "False"


def test_limits_let_searches_wait_in_order() -> None:
    world = World(searches_per_namespace=1)
    for name in ("a", "b", "c"):
        world.submit(name=name)
    world.settle()
    waiting = {
        run["metadata"]["name"].split("-")[0]: run["status"]["conditions"][0]["message"] for run in world.all(RUN)
    }
    assert [name.split("-")[0] for name in world.names(JOB)] == ["a"]
    assert waiting["b"].startswith("position 1 of 2; searches are limited to 1 at the same time in namespace team-a")
    assert waiting["c"].startswith("position 2 of 2")

    job = world.all(JOB)[0]["metadata"]["name"]
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    world.kube.change(JOB, NAMESPACE, job, status=done)
    world.settle()
    assert [name.split("-")[0] for name in world.names(JOB)] == ["a", "b"]
