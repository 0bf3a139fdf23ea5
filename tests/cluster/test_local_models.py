"""A model that is not shipped: its configuration comes from a ConfigMap, and the cluster finds what a laptop finds."""

import json
from pathlib import Path
from typing import Any

from tests.cluster.laptop import assert_the_same, search
from tests.cluster.team import Team, completed, document
from tests.conftest import ROOT

NAME = "qwen3-32b"
MODEL = ROOT / "tests" / "data" / "models" / "llama-fp8-dynamic"
LOCAL: tuple[tuple[str, Any], ...] = (
    ("modelRef.name", "me/llama-fp8"),
    ("modelRef.config", {"configMap": {"name": "llama", "key": "llama.json"}}),
    ("objective.sla", {"ttftMs": 3000, "itlMs": 80}),
)


def put_config(team: Team, text: str) -> None:
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "llama", "namespace": team.namespace},
        "data": {"llama.json": text},
    }
    team.kubectl("create", "-f", "-", input=json.dumps(value))


def test_a_config_map_is_mounted_and_searched_as_on_a_laptop(team: Team, tmp_path: Path) -> None:
    text = (MODEL / "config.json").read_text()
    put_config(team, text)
    asked = document(NAME, *LOCAL)
    team.apply(asked)
    run = team.end(NAME)
    assert completed(run["status"])[1] == "SearchSucceeded"

    files = tmp_path / "config-map"
    files.mkdir()
    (files / "llama.json").write_text(text)
    assert_the_same(team, run, search(asked, tmp_path, "--config-map", f"llama={files}"))


def test_a_config_that_cannot_be_used_is_an_honest_no(team: Team) -> None:
    put_config(team, "{}")
    team.apply(document(NAME, *LOCAL))
    run = team.end(NAME)

    status, reason, message = completed(run["status"])
    assert (status, reason) == ("True", "Unsupported")
    assert "modelRef.config.configMap llama, key llama.json: architectures must name the model's class" in message
