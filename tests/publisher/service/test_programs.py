"""The two programs on a real API server: the same result as a laptop's, and after every crash the same again."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from dgdr_api.canonical import canonical_json
from dgdr_cli.main import app
from dgdr_job.main import process as sweeper_process
from dgdr_kube.client import KubeClient
from dgdr_kube.resource import CONFIG_MAP
from dgdr_publisher.report.reading import read_report
from dgdr_publisher.service import main as publisher_main
from typer.testing import CliRunner

from tests.controlplane.process import wait_for_end
from tests.publisher.conftest import Create
from tests.publisher.samples import AGG, DISAGG, events
from tests.publisher.service.conftest import lines
from tests.publisher.service.programs import Pod, create, engine_of, pod, request_file
from tests.publisher.waiting import until


def laptop(request: Path, out: Path) -> Path:
    assert CliRunner().invoke(app, ["search", str(request), "--out", str(out)]).exit_code == 0
    return out


def assert_equals_laptop(found: Pod, out: Path) -> None:
    """Specs, hashes and status of the candidates, and the points, are those of a laptop; names but for the uid."""

    def told(item: dict[str, Any]) -> str:
        meta = item["metadata"]
        labels = {name: text for name, text in meta["labels"].items() if not name.endswith("/run-uid")}
        return canonical_json([meta["name"], labels, item["spec"], item["status"]])

    files = [yaml.safe_load(path.read_text()) for path in sorted((out / "candidates").iterdir())]
    assert sorted(map(told, found.candidates.values())) == sorted(map(told, files))
    ours, theirs = found.status, yaml.safe_load((out / "run.yaml").read_text())["status"]
    assert ours["candidateRefs"] == theirs["candidateRefs"]
    assert canonical_json([ours["progress"], ours["best"], ours["versions"], ours["provenance"]]) == canonical_json(
        [theirs["progress"], theirs["best"], theirs["versions"], theirs["provenance"]]
    )
    selector = f"sweeper.dgdr.dev/run-uid={found.run.metadata.uid}"
    shards = found.kube.list(CONFIG_MAP, found.run.metadata.namespace, label_selector=selector).items
    assert read_report(shards).parquet == (out / "points.parquet").read_bytes()
    assert ours["reportRef"]["name"] in {item["metadata"]["name"] for item in shards}
    assert f"{found.run.metadata.name}-logs-0" in {item["metadata"]["name"] for item in shards}


def assert_logs(found: Pod) -> None:
    """Every line is an object that names the run, and those about a candidate name it."""
    said = {name: [json.loads(line) for line in found.log(name).splitlines()] for name in ("publisher", "sweeper")}
    for lines_of in said.values():
        assert {line["run"] for line in lines_of} == {found.run.metadata.name}
        assert {line["attempt"] for line in lines_of} == {found.attempt}
    created = {line["candidate"] for line in said["publisher"] if line["message"] == "candidate created"}
    assert found.candidates.keys() <= created


@pytest.fixture
def asked(tmp_path: Path, namespace: str) -> Path:
    return request_file(tmp_path, namespace)


@pytest.mark.parametrize("example", ["qwen3-32b", "qwen3-32b-pareto"])
def test_a_search_equals_that_of_a_laptop_byte_for_byte(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, namespace: str, tmp_path: Path, example: str
) -> None:
    request = request_file(tmp_path, namespace, example)
    out = laptop(request, tmp_path / "out")
    with pod(kube, create(operator, request), kubeconfig) as found:
        found.publisher()
        found.await_socket()
        assert found.sweeper().end() == 0, found.log("sweeper")
        assert_equals_laptop(found, out)
        size = len(canonical_json(found.status).encode())
        assert size < 32 * 1024
        assert_logs(found)


def test_an_unsupported_search_is_an_honest_end(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    with pod(kube, create(operator, request_file(tmp_path, namespace, "unsupported")), kubeconfig) as found:
        found.publisher()
        found.await_socket()
        assert found.sweeper(spec_alone=True).end() == 0, found.log("sweeper")
        assert found.status["outcome"]["reason"] == "Unsupported"
        assert found.candidates == {}


def test_a_killed_publisher_goes_on_from_its_journal(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path, tmp_path: Path
) -> None:
    out = laptop(asked, tmp_path / "out")
    with pod(kube, create(operator, asked), kubeconfig) as found:
        publisher = found.publisher()
        found.await_socket()
        sweeper = found.sweeper()
        until(lambda: b"round.completed" in found.journal, "a round in the journal")
        publisher.kill()
        assert sweeper.running
        publisher.start()
        assert sweeper.end() == 0, found.log("sweeper")
        assert_equals_laptop(found, out)


def test_an_end_that_was_published_but_not_acknowledged_is_published_once(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path, tmp_path: Path
) -> None:
    out = laptop(asked, tmp_path / "out")
    with pod(kube, create(operator, asked), kubeconfig) as found:
        publisher = found.publisher()
        found.await_socket()
        sweeper = found.sweeper()
        until(lambda: b"round.completed" in found.journal, "a round in the journal")
        publisher.signal(signal.SIGSTOP)
        until(lambda: b"search.completed" in found.sweeper_journal, "the end in the sweeper's journal")
        sweeper.signal(signal.SIGSTOP)
        publisher.signal(signal.SIGCONT)
        lines = found.sweeper_journal
        known = httpx.HTTPTransport(uds=str(found.workspace / "publisher.sock"))
        with httpx.Client(transport=known, timeout=60) as client:
            answer = client.post(
                "http://publisher/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"}
            )
        assert answer.json() == {"ackSeq": lines.count(b"\n")}
        before = found.versions
        publisher.kill()
        publisher.start()
        sweeper.signal(signal.SIGCONT)
        assert sweeper.end() == 0, found.log("sweeper")
        assert found.versions == before
        assert_equals_laptop(found, out)


def test_after_the_loss_of_the_pod_the_same_objects_are_found_again(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path, tmp_path: Path
) -> None:
    out = laptop(asked, tmp_path / "out")
    run = create(operator, asked)
    with pod(kube, run, kubeconfig) as lost:
        publisher = lost.publisher()
        lost.await_socket()
        sweeper = lost.sweeper()
        until(lambda: lost.status.get("candidateRefs") or not sweeper.running, "the first candidates")
        publisher.kill()
        sweeper.kill()
        before = {name: item["metadata"]["uid"] for name, item in lost.candidates.items()}
        done = lost.status["progress"]["evaluations"]
    assert before
    with pod(kube, run, kubeconfig, "attempt-2") as found:
        found.publisher()
        found.await_socket()
        assert found.sweeper().end() == 0, found.log("sweeper")
        assert_equals_laptop(found, out)
        after = {name: item["metadata"]["uid"] for name, item in found.candidates.items()}
        kept = before.keys() & after.keys()
        assert kept
        assert all(before[name] == after[name] for name in kept)
        assert all(found.status["progress"]["evaluations"][name] >= done[name] for name in ("feasible", "pruned"))


def test_a_killed_engine_is_started_again_in_the_same_pod(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path, tmp_path: Path
) -> None:
    out = laptop(asked, tmp_path / "out")
    with pod(kube, create(operator, asked), kubeconfig) as found:
        found.publisher()
        found.await_socket()
        sweeper = found.sweeper()
        os.kill(until(lambda: engine_of(sweeper), "the engine"), signal.SIGKILL)
        assert sweeper.end() == 0, found.log("sweeper")
        assert "ended with -9" in found.log("sweeper")
        assert_equals_laptop(found, out)


def test_sigterm_ends_the_sweeper_with_143_and_no_terminal_event(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path
) -> None:
    with pod(kube, create(operator, asked), kubeconfig) as found:
        publisher = found.publisher()
        found.await_socket()
        publisher.signal(signal.SIGSTOP)  # holds the run
        sweeper = found.sweeper()
        until((found.workspace / "sweeper.log").is_file, "the sweeper's log")
        sweeper.signal(signal.SIGTERM)
        assert sweeper.end(5) == 143
        publisher.signal(signal.SIGCONT)
        assert found.status.get("outcome") is None


def test_sigterm_in_the_middle_of_the_search_flushes_the_journal(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path
) -> None:
    with pod(kube, create(operator, asked), kubeconfig) as found:
        publisher = found.publisher()
        found.await_socket()
        sweeper = found.sweeper()
        engine = until(lambda: engine_of(sweeper), "the engine")
        publisher.signal(signal.SIGSTOP)  # the end cannot be acknowledged
        until(lambda: found.sweeper_journal.count(b"\n") > 2, "events in the journal")
        sweeper.signal(signal.SIGTERM)
        assert sweeper.end(5) == 143
        wait_for_end(engine, 5)
        assert found.sweeper_journal.endswith(b"\n")
        publisher.signal(signal.SIGCONT)


def test_a_bad_run_file_is_a_failure_that_the_run_explains(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path
) -> None:
    run = create(operator, asked)
    broken = run.model_copy(update={"spec": run.spec.model_copy(update={"backends": ("tgi",)})})
    with pod(kube, run, kubeconfig) as found:
        found.run = broken
        found.publisher()
        found.await_socket()
        assert found.sweeper().end() == 4
        outcome = found.status["outcome"]
        assert outcome["reason"] == "SearchFailed"
        assert outcome["message"].startswith("InvalidSpec: backends")


def test_the_sweeper_opens_no_connection_but_the_socket(
    kube: KubeClient, operator: KubeClient, kubeconfig: Path, asked: Path, tmp_path: Path
) -> None:
    hook = """
import os, sys
def seen(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        with open(os.environ["DGDR_SEEN"], "a") as file:
            print(event, arguments[-1], file=file)
sys.addaudithook(seen)
"""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(hook)
    seen = tmp_path / "seen"
    with pod(kube, create(operator, asked), kubeconfig) as found:
        found.publisher()
        found.await_socket()
        sweeper = found.sweeper(PYTHONPATH=str(tmp_path / "hook"), DGDR_SEEN=str(seen))
        assert sweeper.end() == 0, found.log("sweeper")
        assert set(seen.read_text().splitlines()) == {f"socket.connect {found.workspace / 'publisher.sock'}"}


def send(found: Pod, content: bytes) -> httpx.Response:
    transport = httpx.HTTPTransport(uds=str(found.workspace / "publisher.sock"))
    with httpx.Client(transport=transport, timeout=60) as client:
        headers = {"Content-Type": "application/x-ndjson"}
        return client.post("http://publisher/v1/events", content=content, headers=headers)


def test_sigterm_publishes_what_waits_for_its_turn(kube: KubeClient, create_run: Create, kubeconfig: Path) -> None:
    of = create_run()
    whole = events(DISAGG, AGG, of=of)
    with pod(kube, of, kubeconfig) as found:
        publisher = found.publisher()
        found.await_socket()
        assert send(found, lines(whole[0])).json() == {"ackSeq": 1}
        until(lambda: found.status.get("progress"), "the first status")
        assert send(found, lines(*whole[1:-1])).json() == {"ackSeq": len(whole) - 1}
        publisher.signal(signal.SIGTERM)
        publisher.end(25)
        assert {ref["name"] for ref in found.status["candidateRefs"]} == found.candidates.keys()
        assert len(found.candidates) == 2
        assert found.status.get("outcome") is None


def test_a_malformed_line_over_the_socket_ends_the_run(kube: KubeClient, create_run: Create, kubeconfig: Path) -> None:
    of = create_run()
    whole = events(DISAGG, of=of)
    with pod(kube, of, kubeconfig) as found:
        found.publisher()
        found.await_socket()
        answer = send(found, lines(*whole[:2]) + b'{"seq": 3}\n')
        assert (answer.status_code, answer.json()["line"], answer.json()["field"]) == (422, 3, "type")
        outcome = until(lambda: found.status.get("outcome"), "the outcome")
        assert outcome["reason"] == "SearchFailed"
        assert outcome["message"].startswith("MalformedEvent: line 3: type: ")
        assert send(found, lines(whole[2])).status_code == 424


def test_both_programs_mean_the_same_socket() -> None:
    assert publisher_main.SOCKET == sweeper_process.SOCKET
