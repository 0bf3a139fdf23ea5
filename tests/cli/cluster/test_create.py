"""A request file to a request in the cluster; what is wrong with it is said in the words of `dgdr search`."""

import json
from pathlib import Path

import pytest
from dgdr_cli.cluster.kinds import REQUEST
from dgdr_kube.resource import Resource

from tests.cli.cluster.conftest import Ask
from tests.cli.cluster.world import World
from tests.cli.conftest import Dgdr, Write


def test_a_request_is_created_as_its_author_wrote_it(ask: Ask, world: World, examples: Path) -> None:
    ended = ask("create", "-f", examples / "qwen3-32b.yaml")

    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == "request qwen3-32b created; follow it: dgdr watch qwen3-32b\n"
    made = world.get(REQUEST, "qwen3-32b")
    assert "rerun" not in made["spec"]
    assert made["spec"]["modelRef"] == {"name": "Qwen/Qwen3-32B"}
    again = ask("create", "-f", examples / "qwen3-32b.yaml")
    assert again.exit_code == 2
    assert f"request qwen3-32b exists in namespace {world.namespace} and is left as it is" in again.stderr
    assert "dgdr rerun qwen3-32b" in again.stderr


@pytest.mark.parametrize("name", ["qwen3-32b", "qwen3-32b-sglang", "qwen3-32b-pareto", "gpt-oss-120b", "unsupported"])
def test_a_server_dry_run_creates_nothing(ask: Ask, world: World, examples: Path, name: str) -> None:
    ended = ask("create", "-f", examples / f"{name}.yaml", "--dry-run=server", "-o", "json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["metadata"]["namespace"] == world.namespace
    assert world.names(REQUEST) == []
    text = ask("create", "-f", examples / f"{name}.yaml", "--dry-run=server")
    assert text.stdout.endswith("would be created (server dry run)\n")


def test_upstreams_version_is_created_as_ours(ask: Ask, world: World, write: Write) -> None:
    assert ask("create", "-f", write(apiVersion="nvidia.com/v1beta2")).exit_code == 0
    assert world.get(REQUEST, "qwen3-32b")["apiVersion"] == "sweeper.dgdr.dev/v1beta2"


@pytest.mark.parametrize(
    "changes",
    [
        {"spec__hardware__gpu__budget": 0},
        {"spec__hardware__gpu__bugdet": 16},
        {"spec__hardware__gpu__sku": "H2000"},
        {"spec__objective__metric": None},
        {"metadata__name": "Qwen"},
        {"kind": "Deployment"},
    ],
)
def test_what_is_wrong_is_said_as_by_a_search_and_no_server_is_asked(
    dgdr: Dgdr, write: Write, tmp_path: Path, changes: dict[str, object]
) -> None:
    request = write(**changes)
    searched = dgdr("search", request, "--out", tmp_path / "out")
    created = dgdr("create", "-f", request, "--kubeconfig", tmp_path / "none")
    assert (created.exit_code, created.stderr) == (2, searched.stderr)


def test_a_file_that_was_read_from_a_server(ask: Ask, world: World, write: Write) -> None:
    meta = {"resourceVersion": "7", "uid": "u", "generation": 9, "creationTimestamp": "2026-01-01T00:00:00Z"}
    request = write(metadata={"name": "qwen", "labels": {"a": "b"}} | meta)
    assert ask("create", "-f", request).exit_code == 0
    made = world.get(REQUEST, "qwen")["metadata"]
    assert (made["labels"], made["generation"]) == ({"a": "b"}, 1)


def test_two_namespaces_that_differ(ask: Ask, world: World, write: Write) -> None:
    ended = ask("create", "-f", write(metadata__namespace="default"))
    assert ended.exit_code == 2
    assert f"metadata.namespace is default, --namespace is {world.namespace}" in ended.stderr
    assert world.names(REQUEST) == []


def test_the_namespace_of_the_file_wins_over_that_of_the_context(
    dgdr: Dgdr, world: World, write: Write, kubeconfig: Path
) -> None:
    request = write(metadata__namespace=world.namespace)
    assert dgdr("create", "-f", request, "--kubeconfig", kubeconfig).exit_code == 0
    assert world.names(REQUEST) == ["qwen3-32b"]


def test_what_only_the_server_can_see(
    ask: Ask, kinds: None, examples: Path, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    nowhere = ask("create", "-f", examples / "qwen3-32b.yaml", namespace="nowhere")
    assert nowhere.exit_code == 2
    assert "there is no namespace nowhere" in nowhere.stderr
    invalid = ask("create", "-f", write(metadata__labels={"no label": "x"}))
    assert invalid.exit_code == 2
    assert "request.yaml: the API server refuses it" in invalid.stderr
    monkeypatch.setattr("dgdr_cli.cluster.kinds.REQUEST", Resource("sweeper.dgdr.dev/v9", REQUEST.kind, REQUEST.plural))
    missing = ask("create", "-f", examples / "qwen3-32b.yaml")
    assert missing.exit_code == 4
    assert "install the operator's CustomResourceDefinitions" in missing.stderr
