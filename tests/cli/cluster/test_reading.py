"""runs, candidates, show and diff: what they print of what is in the cluster, and that it cannot harm a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_api import reasons
from dgdr_cli.cluster.kinds import CANDIDATE, REQUEST, RUN

from tests.cli.cluster.conftest import Ask
from tests.cli.cluster.world import World
from tests.publisher.samples import AGG, DISAGG, evaluated, role

READING = {
    "runs": ("request", "dgdreq"),
    "candidates": ("run", "runs REQUEST"),
    "show": ("candidate", "candidates RUN"),
    "report": ("run", "runs REQUEST"),
}


def test_runs_in_the_order_of_the_request(ask: Ask, world: World) -> None:
    request = world.request()
    first = world.publish(world.run(request))
    world.stand(first.run, reasons.SUPERSEDED, "run 2 took its place")
    again = world.user.merge_patch(REQUEST, world.namespace, "qwen", {"spec": {"rerun": {"reason": "again"}}})
    second = world.run(again).metadata.name
    world.stand(second, reasons.EVALUATING_CANDIDATES, "1/9")
    world.answer(
        reasons.RUN_CREATED, f"run {second}", recentRunRefs=[{"name": second}, {"name": first.run}, {"name": "gone"}]
    )

    ended = ask("runs", "qwen")
    assert (ended.exit_code, ended.stderr) == (0, "")
    rows = [line.split() for line in ended.stdout.splitlines() if line.strip().startswith("qwen-run")]
    assert [row[:3] for row in rows] == [
        [second, "Running", "EvaluatingCandidates"],
        [first.run, "Failed", "Superseded"],
    ]
    assert rows[1][3:6] == ["100", "tok/s/GPU", "2"]
    data = json.loads(ask("runs", "qwen", "-o", "json").stdout)
    assert [run["metadata"]["name"] for run in data] == [second, first.run]
    assert "managedFields" not in data[0]["metadata"]
    assert yaml.safe_load(ask("runs", "qwen", "-o", "yaml").stdout) == data


def test_a_run_that_only_bears_the_label_is_not_listed(ask: Ask, world: World) -> None:
    found = world.ended()
    world.copy_of(RUN, found.run, metadata={"ownerReferences": []})
    assert ask("runs", "qwen").stdout == ""


def test_a_request_without_a_run(ask: Ask, world: World) -> None:
    world.request()
    ended = ask("runs", "qwen")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr == "dgdr: request qwen has no run: generation 1 waits for the operator\n"
    world.answer(reasons.UNKNOWN_HARDWARE, "hardware.gpu.sku: near is h200_sxm")
    assert "UnknownHardware: hardware.gpu.sku: near is h200_sxm" in ask("runs", "qwen").stderr


def test_candidates_in_the_order_of_the_run(ask: Ask, world: World) -> None:
    found = world.ended()
    ended = ask("candidates", found.run)
    assert (ended.exit_code, ended.stderr) == (0, "")
    rows = [line.split() for line in ended.stdout.splitlines() if line.strip().startswith("qwen-g")]
    assert [row[:10] for row in rows] == [
        [found.candidates[0], "1", "disagg", "vllm", "10", "100", "tok/s/GPU", "544.6", "ms", "39.01"],
        [found.candidates[1], "2", "agg", "vllm", "4", "90", "tok/s/GPU", "544.6", "ms", "39.01"],
    ]
    data = json.loads(ask("candidates", found.run, "-o", "json").stdout)
    assert tuple(one["metadata"]["name"] for one in data) == found.candidates

    world.progress(found.run, candidateRefs=[{"name": name} for name in reversed(found.candidates)])
    data = json.loads(ask("candidates", found.run, "-o", "json").stdout)
    assert tuple(one["metadata"]["name"] for one in data) == tuple(reversed(found.candidates))


def test_a_run_without_candidates(ask: Ask, world: World) -> None:
    name = world.run().metadata.name
    world.stand(name, reasons.NO_FEASIBLE_CANDIDATE, "nothing meets ttft 1 ms")
    ended = ask("candidates", name)
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr == f"dgdr: run {name} has no candidate: NoFeasibleCandidate: nothing meets ttft 1 ms\n"
    assert json.loads(ask("candidates", name, "-o", "json").stdout) == []


def test_show_is_what_promote_creates(ask: Ask, world: World) -> None:
    found = world.ended()
    shown = json.loads(ask("show", found.candidates[0], "--name", "qwen", "-o", "json").stdout)
    made = json.loads(ask("promote", found.candidates[0], "--name", "qwen", "-o", "json").stdout)
    assert shown["dgd"]["spec"] == made["spec"]
    assert shown["dgd"]["metadata"] == {name: made["metadata"][name] for name in ("name", "namespace", "annotations")}
    assert shown["evaluation"]["metrics"]["ttftMs"] == 544.561
    assert {row["parameter"] for row in shown["materialization"]} >= {"model", "decode.shape.tp", "workload.static.isl"}
    assert [one["type"] for one in shown["conditions"]] == ["Evaluated", "Materialized", "VersionBound"]


def test_show_for_a_reader(ask: Ask, world: World) -> None:
    found = world.ended()
    ended = ask("show", found.candidates[0])
    assert (ended.exit_code, ended.stderr) == (0, "")
    dgd = yaml.safe_load(ended.stdout.split("\n\n")[0])
    assert dgd["metadata"]["name"] == f"qwen-{found.candidates[0][-8:]}"
    for words in ("Results", "100 tok/s/GPU", "ttftMs", "544.6", "decode.shape.tp", "RenderedAndVerified"):
        assert words in ended.stdout
    world.delete(RUN, found.run)
    assert ask("show", found.candidates[0]).exit_code == 0


def test_the_places_that_show_names_are_there(ask: Ask, world: World) -> None:
    found = world.ended()
    shown = json.loads(ask("show", found.candidates[0], "-o", "json").stdout)
    placed = [row for row in shown["materialization"] if "destination" in row]
    assert len(placed) > 20
    for row in placed:
        at: Any = shown["dgd"]
        for step in row["destination"].split("/")[1:]:
            at = at[int(step)] if isinstance(at, list) else at[step.replace("~1", "/").replace("~0", "~")]


def test_diff_names_options_places_and_results(ask: Ask, world: World) -> None:
    wider = evaluated(role("agg", {"tp": 2}, workers=2, maxNumSeqs=128), score=95.0)
    of = world.run()
    found = world.publish(of, wider, AGG)
    data = json.loads(ask("diff", *found.candidates, "-o", "json").stdout)
    (option,) = [row for row in data["dgd"] if row["option"]]
    assert option == {
        "pointer": "/spec/components/1/podTemplate/spec/containers/0/args/13",
        "left": '"128"',
        "right": '"256"',
        "option": "--max-num-seqs",
    }
    assert data["parameters"] == []
    assert ("/status/evaluation/score", "95", "90") in [
        (row["pointer"], row["left"], row["right"]) for row in data["metrics"]
    ]
    text = ask("diff", *found.candidates)
    assert (text.exit_code, text.stderr) == (0, "")
    for words in ("--max-num-seqs", '"128"', '"256"', "Deployment", "Results", "/status/evaluation/score"):
        assert words in text.stdout
    same = ask("diff", found.candidates[0], found.candidates[0])
    assert (same.exit_code, same.stdout) == (0, "")
    assert "do not differ" in same.stderr


def test_diff_of_two_topologies(ask: Ask, world: World) -> None:
    found = world.publish(world.run(), DISAGG, AGG)
    data = json.loads(ask("diff", *found.candidates, "-o", "json").stdout)
    rows = [(row["pointer"], row["option"], row["left"], row["right"]) for row in data["dgd"]]
    assert ("/spec/components/1/name", "", '"prefill"', None) in rows
    assert ("/spec/components/1/name", "", None, '"worker"') in rows
    arguments = "/spec/components/2/podTemplate/spec/containers/0/args"
    assert (f"{arguments}/9", "--tensor-parallel-size", '"2"', None) in rows
    assert ask("diff", *found.candidates).exit_code == 0


@pytest.mark.parametrize("command", READING)
def test_what_is_not_there(ask: Ask, world: World, command: str) -> None:
    word, hint = READING[command]
    ended = ask(command, "absent")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"there is no {word} absent in namespace {world.namespace}" in ended.stderr
    assert hint in ended.stderr
    wrong = ask(command, "../../pods")
    assert wrong.exit_code == 2
    assert f"{word} '../../pods': must be a DNS label" in wrong.stderr
    spaced = ask(command, "absent", namespace="no spaces")
    assert spaced.exit_code == 2
    assert "--namespace 'no spaces': must be a DNS label" in spaced.stderr


HARM = "\x1b]0;owned\x07\x9b31m\u202ered\r[bold]"
"""Sets the title of a terminal, colours, reverses, overwrites; and is rich's markup."""


def test_nothing_from_the_cluster_reaches_the_terminal_as_a_control(ask: Ask, world: World) -> None:
    found = world.ended()
    world.stand(found.run, reasons.SEARCH_SUCCEEDED, HARM)
    labels = world.get(CANDIDATE, found.candidates[0])["metadata"]["labels"]
    spec = world.get(CANDIDATE, found.candidates[0])["spec"] | {"note": HARM, HARM: 1}
    status = world.get(CANDIDATE, found.candidates[0])["status"]
    status["evaluation"]["display"] |= {"mode": HARM, "ttft": HARM}
    status["conditions"][0]["message"] = HARM
    world.copy_of(CANDIDATE, found.candidates[0], spec=spec, metadata={"labels": labels}, status=status)
    one, two = found.candidates
    for words in (
        ("runs", "qwen"),
        ("candidates", found.run),
        ("show", one),
        ("diff", one, two),
        ("cancel", found.run, "--reason", "x"),
        ("promote", one, "--name", "qwen"),
    ):
        for output in ("text", "json", "yaml") if words[0] not in ("cancel", "promote") else (None,):
            ended = ask(*words, *(("-o", output) if output else ()))
            for character in "\x1b\x07\x9b\u202e\r":
                assert character not in ended.output, (words, output)
    assert json.loads(ask("show", one, "-o", "json").stdout)["dgd"]["spec"]["note"] == HARM
    assert yaml.safe_load(ask("show", one, "-o", "yaml").stdout)["dgd"]["spec"][HARM] == 1
    assert "\\u001b]0;owned" in ask("candidates", found.run).stdout.replace("\n", "")


def test_which_cluster_is_asked(ask: Ask, world: World, kubeconfig: Path, tmp_path: Path) -> None:
    world.ended()
    config = yaml.safe_load(kubeconfig.read_text())
    config["contexts"].append({"name": "here", "context": {**config["contexts"][0]["context"], "namespace": "x"}})
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    assert ask("runs", "qwen", "--context", "here", kubeconfig=file).exit_code == 0
    unknown = ask("runs", "qwen", "--context", "there", kubeconfig=file)
    assert unknown.exit_code == 2
    assert "there is no context there; it has" in unknown.stderr
    absent = ask("runs", "qwen", kubeconfig=tmp_path / "absent")
    assert absent.exit_code == 2
    assert f"kubeconfig {tmp_path / 'absent'}: there is no such file" in absent.stderr
    file.write_text("contexts: 7\n")
    broken = ask("runs", "qwen", kubeconfig=file)
    assert broken.exit_code == 2
    assert "Traceback" not in broken.output
