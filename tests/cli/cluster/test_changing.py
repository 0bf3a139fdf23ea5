"""rerun and cancel: what they write, and when they write nothing."""

from typing import Any

import pytest
from dgdr_api import reasons
from dgdr_api.group import ANNOTATION_CANCEL, ANNOTATION_RERUN_REASON
from dgdr_cli.cluster.kinds import REQUEST, RUN
from dgdr_kube.client import KubeClient

from tests.cli.cluster.conftest import Ask
from tests.cli.cluster.world import World


def test_a_rerun_is_a_new_generation_with_the_reason(ask: Ask, world: World) -> None:
    before = world.request()
    ended = ask("rerun", "qwen", "--reason", "new data")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert "request qwen: another run is asked for by generation 2; follow it: dgdr watch qwen" in ended.stdout
    after = world.get(REQUEST, "qwen")
    assert after["spec"] == before["spec"] | {"rerun": {"reason": "new data"}}

    again = ask("rerun", "qwen", "--reason", "new data")
    assert again.exit_code == 2
    assert "has the rerun reason 'new data' already" in again.stderr
    assert world.get(REQUEST, "qwen")["metadata"]["generation"] == 2
    assert ask("rerun", "qwen", "--reason", "newer data").exit_code == 0


@pytest.mark.parametrize("stopped", [reasons.CANCELLED, reasons.SUPERSEDED])
def test_a_reason_that_the_last_run_has_starts_nothing(ask: Ask, world: World, stopped: reasons.Reason) -> None:
    """The request was applied anew from its file: it has lost the reason, its run has not."""
    asked = world.request("qwen", ("rerun", {"reason": "new data"}))
    run = world.run(asked).metadata
    assert run.annotations[ANNOTATION_RERUN_REASON] == "new data"
    world.stand(run.name, reasons.SEARCH_SUCCEEDED, "2 candidates")
    before = world.user.merge_patch(REQUEST, world.namespace, "qwen", {"spec": {"rerun": None}})
    world.answer(reasons.RUN_CREATED, recentRunRefs=[{"name": run.name}, {"name": "gone"}])

    ended = ask("rerun", "qwen", "--reason", "new data")

    assert ended.exit_code == 2
    assert f"its last run {run.name} has the rerun reason 'new data' already" in ended.stderr
    assert "give another --reason" in ended.stderr
    assert world.get(REQUEST, "qwen")["metadata"]["generation"] == before["metadata"]["generation"]
    world.stand(run.name, stopped, "by a user")
    assert ask("rerun", "qwen", "--reason", "new data").exit_code == 0


def test_a_last_run_that_is_gone_does_not_count(ask: Ask, world: World) -> None:
    world.request()
    world.answer(reasons.RUN_CREATED, recentRunRefs=[{"name": "gone"}])
    assert ask("rerun", "qwen", "--reason", "new data").exit_code == 0


@pytest.mark.parametrize("command", ["rerun", "cancel"])
def test_a_reason_is_text(ask: Ask, command: str) -> None:
    """What a shell passes on as bytes that are no UTF-8."""
    ended = ask(command, "qwen", "--reason", "\udcff")
    assert ended.exit_code == 2
    assert "must be UTF-8 text" in ended.stderr


def test_a_rerun_says_what_it_does_to_others(ask: Ask, world: World) -> None:
    world.request()
    world.answer(reasons.RUN_CREATED, "run x", activeRunRef={"name": "qwen-run-1-abcd"})
    assert "run qwen-run-1-abcd is still going on: it is superseded" in ask("rerun", "qwen", "--reason", "a").stderr
    world.user.merge_patch(REQUEST, world.namespace, "qwen", {"spec": {"suspend": True}})
    assert "request qwen is suspended" in ask("rerun", "qwen", "--reason", "b").stderr


def test_a_cancel_is_an_annotation_of_the_run(ask: Ask, world: World) -> None:
    name = world.run().metadata.name
    ended = ask("cancel", name, "--reason", "too dear")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert world.get(RUN, name)["metadata"]["annotations"][ANNOTATION_CANCEL] == "too dear"
    again = ask("cancel", name, "--reason", "other")
    assert (again.exit_code, again.stdout) == (0, "")
    assert f"run {name} is being cancelled already: too dear" in again.stderr
    assert world.get(RUN, name)["metadata"]["annotations"][ANNOTATION_CANCEL] == "too dear"


def test_an_ended_run_is_not_cancelled(ask: Ask, world: World) -> None:
    found = world.ended()
    ended = ask("cancel", found.run, "--reason", "too dear")
    assert ended.exit_code == 2
    assert f"run {found.run} has ended already: SearchSucceeded: 2 candidates" in ended.stderr
    assert ANNOTATION_CANCEL not in world.get(RUN, found.run)["metadata"]["annotations"]


@pytest.mark.parametrize("command", ["rerun", "cancel"])
@pytest.mark.parametrize("reason", ["", "  ", "x" * 1025, "ü" * 513])
def test_a_reason_says_something_and_fits(ask: Ask, command: str, reason: str) -> None:
    ended = ask(command, "qwen", "--reason", reason)
    assert ended.exit_code == 2
    assert "--reason has" in ended.stderr


@pytest.mark.parametrize(("command", "word"), [("rerun", "request"), ("cancel", "run")])
def test_what_is_not_there(ask: Ask, world: World, command: str, word: str) -> None:
    ended = ask(command, "absent", "--reason", "x")
    assert ended.exit_code == 2
    assert f"there is no {word} absent in namespace {world.namespace}" in ended.stderr


def test_what_somebody_changed_meanwhile_is_looked_at_again(
    ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends between the look and the annotation: then there is nothing to cancel."""
    name = world.run().metadata.name
    patch = KubeClient.merge_patch
    raced: list[str] = []

    def late(kube: KubeClient, *arguments: Any) -> dict[str, Any]:
        if not raced:
            raced.append(name)
            world.stand(name, reasons.SEARCH_FAILED, "engine")
        return patch(kube, *arguments)

    monkeypatch.setattr(KubeClient, "merge_patch", late)
    ended = ask("cancel", name, "--reason", "too dear")
    assert ended.exit_code == 2
    assert "has ended already: SearchFailed: engine" in ended.stderr
