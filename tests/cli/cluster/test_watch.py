"""watch: each line is a change, the exit code is the run's outcome, and nothing but the end ends it."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dgdr_api import reasons
from dgdr_cli.cluster.kinds import REQUEST, RUN
from dgdr_cli.cluster.outcome import CODES

from tests.cli.cluster.conftest import PROGRAM, Ask, Start, install_kinds, world_of
from tests.cli.cluster.world import World
from tests.cluster.promotion import dynamo_crd
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import start_control_plane

ENDS = [reason for reason in reasons.reasons_of("Completed") if reason.status == "True"]
BRANCHES = [{"name": "vllm/agg", "rounds": {"completed": 0, "total": 1}, "pool": 340}]


@pytest.fixture(autouse=True)
def keyboard_interrupts_reach_children() -> Iterator[None]:
    """Tests that are started in the background ignore SIGINT, and so would their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def progress(world: World, run: str, done: int, **status: object) -> None:
    counters = {"scheduled": 340, "remaining": 340 - done, "feasible": done // 3}
    found = {"summary": f"{done}/340", "branches": BRANCHES, "evaluations": counters}
    world.progress(run, progress=found, **status)


def test_from_a_request_that_waits_to_the_end_of_its_run(start: Start, world: World) -> None:
    request = world.request()
    watch = start("watch", "qwen")
    assert watch.line() == "qwen: generation 1 waits for the operator"

    run = world.run(request)
    name = run.metadata.name
    world.answer(reasons.RUN_CREATED, f"run {name}", activeRunRef={"name": name}, recentRunRefs=[{"name": name}])
    assert watch.line() == f"{name} Pending"
    world.stand(name, reasons.PREFLIGHT, "finding out what can be evaluated")
    assert watch.line() == f"{name} Running Preflight: finding out what can be evaluated"
    world.stand(name, reasons.EVALUATING_CANDIDATES, "120/340")
    assert watch.line() == f"{name} Running EvaluatingCandidates: 120/340"
    progress(world, name, 120)
    assert watch.line() == f"{name} Running EvaluatingCandidates: 120/340 evaluated, 40 feasible"
    world.publish(run)
    ended = watch.line()
    assert ended.startswith(
        f"{name} Running EvaluatingCandidates: 12/12 evaluated, 3 feasible, best 100 tok/s/GPU (10 G"
    )
    assert ended.endswith("2 candidates, 120/340")
    world.stand(name, reasons.SEARCH_SUCCEEDED, "2 candidates")
    code, output, errors = watch.end()
    assert (code, errors) == (0, "")
    last, hint = output.splitlines()
    assert last.startswith(f"{name} Succeeded SearchSucceeded: 12/12 evaluated")
    assert hint == f"see them: kubectl dgdr candidates {name}"


@pytest.mark.parametrize("reason", ENDS, ids=lambda reason: reason.name)
@pytest.mark.parametrize("candidates", [False, True])
def test_the_exit_code_is_the_outcome(ask: Ask, world: World, reason: reasons.Reason, *, candidates: bool) -> None:
    if candidates:
        world.ended(reason)
    else:
        name = world.run().metadata.name
        world.stand(name, reason, "why")
        world.answer(reasons.RUN_CREATED, recentRunRefs=[{"name": name}])
    expected = {
        "SearchSucceeded": 0,
        "BudgetExhausted": 0 if candidates else 3,
        "NoFeasibleCandidate": 3,
        "Unsupported": 3,
        "NothingRenderable": 3,
        "SearchFailed": 4,
        "PodRejected": 4,
        "DeadlineExceeded": 4,
        "Superseded": 130,
        "Cancelled": 130,
    }
    ended = ask("watch", "qwen")
    assert ended.exit_code == expected[reason.name]
    assert f" {reason.name}: " in ended.stdout
    assert (f"ended: {reason.name}: " in ended.stderr) == (ended.exit_code != 0)


def test_every_end_has_an_exit_code() -> None:
    assert {reason.name for reason in ENDS} == {*CODES, "BudgetExhausted"}


def test_a_request_that_is_refused(ask: Ask, start: Start, world: World) -> None:
    world.request()
    watch = start("watch", "qwen")
    watch.line()
    world.answer(reasons.UNKNOWN_HARDWARE, "hardware.gpu.sku: near is h200_sxm")
    code, output, errors = watch.end()
    assert (code, output) == (2, "")
    assert errors == "dgdr: request qwen is refused: UnknownHardware: hardware.gpu.sku: near is h200_sxm\n"
    again = ask("watch", "qwen")
    assert (again.exit_code, again.stderr) == (2, errors)


def test_a_new_generation_is_waited_for_and_the_old_run_not_followed(start: Start, world: World) -> None:
    found = world.ended()
    world.answer(reasons.RUN_CREATED, activeRunRef={"name": found.run}, recentRunRefs=[{"name": found.run}])
    again = world.user.merge_patch(REQUEST, world.namespace, "qwen", {"spec": {"rerun": {"reason": "again"}}})
    watch = start("watch", "qwen")
    assert watch.line() == f"qwen: generation 2 waits for the operator: run {found.run} ends first"
    second = world.run(again).metadata.name
    world.stand(second, reasons.UNSUPPORTED, "no data")
    world.answer(reasons.RUN_CREATED, recentRunRefs=[{"name": second}, {"name": found.run}])
    code, output, _ = watch.end()
    assert (code, output) == (3, f"{second} Succeeded Unsupported: no data\n")


def test_a_run_of_an_older_generation_says_so(ask: Ask, world: World) -> None:
    """As when a request is suspended after its run has ended, or asks for what that run has searched."""
    found = world.ended()
    world.user.merge_patch(REQUEST, world.namespace, "qwen", {"spec": {"suspend": True}})
    why = f"suspended: nothing is started; the last run is {found.run}"
    world.answer(reasons.RUN_CREATED, why, recentRunRefs=[{"name": found.run}])
    ended = ask("watch", "qwen")
    assert ended.exit_code == 0
    assert ended.stderr == f"dgdr: run {found.run} is of generation 1, the request of 2: {why}\n"


def test_a_suspended_request_is_waited_for(start: Start, world: World) -> None:
    request = world.request("qwen", ("suspend", True))
    world.answer(None)
    watch = start("watch", "qwen")
    assert watch.line() == "qwen: the request is suspended: nothing is started until spec.suspend is false"
    world.delete(REQUEST, request["metadata"]["name"])
    code, _, errors = watch.end()
    assert (code, errors) == (4, "dgdr: request qwen was deleted while it was watched\n")


def test_a_run_that_is_deleted(start: Start, world: World) -> None:
    name = world.run().metadata.name
    world.answer(reasons.RUN_CREATED, activeRunRef={"name": name})
    watch = start("watch", "qwen")
    assert watch.line() == f"{name} Pending"
    world.delete(RUN, name)
    code, _, errors = watch.end()
    assert (code, errors) == (4, f"dgdr: run {name} was deleted: nobody can tell how it would have ended\n")


def test_what_is_not_there(ask: Ask, world: World) -> None:
    ended = ask("watch", "absent")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"there is no request absent in namespace {world.namespace}" in ended.stderr


def test_the_run_as_data_at_the_end(start: Start, world: World) -> None:
    name = world.run().metadata.name
    world.answer(reasons.RUN_CREATED, activeRunRef={"name": name})
    world.stand(name, reasons.NO_FEASIBLE_CANDIDATE, "none")
    code, output, errors = start("watch", "qwen", "-o", "json").end()
    assert code == 3
    assert json.loads(output)["status"]["phase"] == "Succeeded"
    assert errors.splitlines() == [
        f"{name} Succeeded NoFeasibleCandidate: none",
        f"dgdr: run {name} ended: NoFeasibleCandidate: none",
    ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_watch_and_not_the_run(start: Start, world: World, number: int, code: int) -> None:
    name = world.run().metadata.name
    world.answer(reasons.RUN_CREATED, activeRunRef={"name": name})
    before = world.get(RUN, name)
    watch = start("watch", "qwen")
    assert watch.line() == f"{name} Pending"
    watch.process.send_signal(number)
    found, output, errors = watch.end()
    assert found == code
    assert output in ("", f"{name} Pending\n")  # again, where the signal comes in the moment of the write
    again = f"`kubectl dgdr watch qwen -n {world.namespace}` follows it again"
    assert errors == f"dgdr: the watch ended, the search goes on; {again}\n"
    assert world.get(RUN, name) == before


def test_on_a_terminal_the_view_stays_in_place(world: World, kubeconfig: Path) -> None:
    name = world.run().metadata.name
    world.answer(reasons.RUN_CREATED, activeRunRef={"name": name})
    world.stand(name, reasons.EVALUATING_CANDIDATES, "120/340")
    progress(world, name, 120)
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", PROGRAM, "watch", "qwen", "-n", world.namespace]
    env = os.environ | {"KUBECONFIG": str(kubeconfig), "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(words, stdout=theirs, stderr=subprocess.PIPE, env=env) as process:
        os.close(theirs)
        seen = ""
        while "feasible" not in seen:
            seen += os.read(ours, 65_536).decode()
        assert "120/340" in seen
        progress(world, name, 240)
        while "240/340" not in seen:
            seen += os.read(ours, 65_536).decode()
        assert "\x1b[1A" in seen  # drawn over the lines before
        world.stand(name, reasons.CANCELLED, "\x1b[2Jtoo dear")
        assert process.wait(timeout=60) == 130
        while True:
            try:
                seen += os.read(ours, 65_536).decode()
            except OSError:  # the terminal has no writer any more
                break
        os.close(ours)
    assert "\x1b[2J" not in seen
    assert "\\u001b[2Jtoo dear" in re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", seen)
    assert "\x1b[?25h" in seen  # the cursor is shown again


@pytest.mark.parametrize("variable", ["TERM=dumb", "TTY_COMPATIBLE=0"])
def test_on_a_terminal_that_cannot_move_its_cursor_each_change_is_a_line(
    world: World, kubeconfig: Path, variable: str
) -> None:
    name = world.run().metadata.name
    world.answer(reasons.RUN_CREATED, activeRunRef={"name": name})
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", PROGRAM, "watch", "qwen", "-n", world.namespace]
    setting, value = variable.split("=")
    env = os.environ | {"KUBECONFIG": str(kubeconfig), "TERM": "xterm"} | {setting: value}
    with subprocess.Popen(words, stdout=theirs, stderr=subprocess.PIPE, env=env) as process:
        os.close(theirs)
        with os.fdopen(ours, "rb") as terminal:
            assert terminal.readline() == f"{name} Pending\r\n".encode()
            world.stand(name, reasons.UNSUPPORTED, "no data")
            assert terminal.readline() == f"{name} Succeeded Unsupported: no data\r\n".encode()
            assert process.wait(timeout=60) == 3


def test_an_api_server_that_restarts_is_survived(
    controlplane_binaries: dict[str, Path], make_kubectl: Callable[[Path], Kubectl], start: Start
) -> None:
    with start_control_plane(controlplane_binaries) as plane:
        install_kinds(make_kubectl(plane.kubeconfig), plane.kubeconfig, dynamo_crd())
        world = world_of(plane.kubeconfig, "default")
        name = world.run().metadata.name
        world.answer(reasons.RUN_CREATED, activeRunRef={"name": name})
        watch = start("watch", "qwen", namespace="default", kubeconfig=plane.kubeconfig)
        assert watch.line() == f"{name} Pending"
        plane.apiserver.kill()
        errors = watch.process.stderr
        assert errors is not None
        assert errors.readline() == "dgdr: the API server does not answer; waiting for it\n"
        plane.apiserver.start()
        plane.wait_until_ready()
        assert errors.readline() == "dgdr: the API server answers again\n"
        world.stand(name, reasons.SEARCH_SUCCEEDED, "found")
        code, output, rest = watch.end()
        assert (code, output) == (0, f"{name} Succeeded SearchSucceeded: found\n")
        assert rest == ""
