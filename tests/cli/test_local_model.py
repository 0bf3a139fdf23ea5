"""A model that is not shipped, from folders that stand for the ConfigMap or the claim that a request names."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Dgdr, Write
from tests.conftest import ROOT

LLAMA = ROOT / "tests" / "data" / "models" / "llama-fp8-dynamic"
LOCAL: dict[str, Any] = {
    "spec__modelRef": {"name": "me/llama-fp8", "config": {"configMap": {"name": "llama"}}},
    "spec__objective__sla": {"ttftMs": 3000, "itlMs": 80},
}
CLAIM: dict[str, Any] = {
    **LOCAL,
    "spec__modelRef": {"name": "me/llama-fp8", "cache": {"pvc": {"name": "models", "modelPath": "llama"}}},
}


def test_the_same_files_at_another_place_give_the_same_bytes(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    places = [LLAMA, tmp_path / "elsewhere"]
    shutil.copytree(LLAMA, places[1])
    for index, place in enumerate(places):
        ended = dgdr("search", write(**LOCAL), "--config-map", f"llama={place}", "--out", tmp_path / f"out{index}")
        assert ended.exit_code == 0, ended.output
    results = [tmp_path / "out0", tmp_path / "out1"]
    candidates = sorted(path.name for path in (results[0] / "candidates").iterdir())
    for name in ["dgd.yaml", "dgd.mapping.yaml", "points.parquet", *(f"candidates/{name}" for name in candidates)]:
        assert (results[0] / name).read_bytes() == (results[1] / name).read_bytes(), name
    text = "".join(path.read_text() for path in results[1].rglob("*.yaml")) + (results[1] / "events.ndjson").read_text()
    assert str(places[1]) not in text
    timing = yaml.safe_load((results[0] / "candidates" / candidates[0]).read_text())["status"]["evaluation"]
    (digest,) = {role["timing"]["configSha256"] for role in timing["replaySpec"]["roles"]}
    assert len(digest) == 64


def test_a_model_in_a_claim_is_read_there_and_served_from_there(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    shutil.copytree(LLAMA, tmp_path / "claim" / "llama")
    request = write(**CLAIM)
    ended = dgdr("search", request, "--mount", f"models={tmp_path / 'claim'}", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.output
    dgd = yaml.safe_load((tmp_path / "out" / "dgd.yaml").read_text())
    worker = dgd["spec"]["components"][1]["podTemplate"]["spec"]
    arguments = worker["containers"][0]["args"]
    assert arguments[arguments.index("--model") + 1] == "/opt/model-cache/llama"
    assert arguments[arguments.index("--served-model-name") + 1] == "me/llama-fp8"
    assert worker["volumes"] == [{"name": "model-cache", "persistentVolumeClaim": {"claimName": "models"}}]
    best = f"{tmp_path / 'out' / 'candidates'}/{dgd['metadata']['name']}"
    candidate = next((tmp_path / "out" / "candidates").glob(f"*{best[-8:]}.yaml"))
    assert dgdr("verify", tmp_path / "out" / "dgd.yaml", candidate, "--request", request).exit_code == 0


def test_a_search_knows_its_size_without_the_network(dgdr: Dgdr, write: Write) -> None:
    ended = dgdr("space", write(**LOCAL), "--config-map", f"llama={LLAMA}", "-o", "json")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["branches"][0]["shapes"] == {"agg": 5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config-map", "llama"], "--config-map llama: must be NAME=DIRECTORY"),
        (
            ["--config-map", "qwen=."],
            "--config-map qwen=.: modelRef.config.configMap.name is not qwen",
        ),
        (["--mount", "models=."], "--mount models=.: modelRef.cache.pvc.name is not models; the request names none"),
        (["--config-map", "llama=none/such"], "--config-map llama=none/such: none/such is no directory"),
        (["--config-map", "llama=.", "--config-map", "llama=."], "--config-map llama: is given twice"),
    ],
)
def test_an_option_that_says_nothing_is_wrong_input(
    dgdr: Dgdr, write: Write, tmp_path: Path, options: list[str], message: str
) -> None:
    ended = dgdr("search", write(**LOCAL), *options, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert message in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "content", "message"),
    [
        (
            LOCAL,
            None,
            "modelRef.config.configMap llama: its files are not here; on a laptop give --config-map llama",
        ),
        (CLAIM, None, "modelRef.cache.pvc models: its files are not here; on a laptop give --mount models=DIRECTORY"),
        (LOCAL, "{", "modelRef.config.configMap llama, key config.json: is no JSON that can be used"),
        (
            {**LOCAL, "spec__modelRef": {"name": "me/llama-fp8"}},
            None,
            "give its config.json by modelRef.config.configMap, or its files by modelRef.cache.pvc",
        ),
    ],
)
def test_what_cannot_be_read_is_an_unknown_model(
    dgdr: Dgdr, write: Write, tmp_path: Path, changes: dict[str, Any], content: str | None, message: str
) -> None:
    options: list[str] = []
    if content is not None:
        (tmp_path / "map").mkdir()
        (tmp_path / "map" / "config.json").write_text(content)
        options = ["--config-map", f"llama={tmp_path / 'map'}"]
    ended = dgdr("search", write(**changes), *options, "--out", tmp_path / "out", "-o", "json")
    assert ended.exit_code == 3
    supported = json.loads(ended.stdout)["status"]["conditions"][0]
    assert (supported["status"], supported["reason"]) == ("False", "UnknownModel")
    assert message in supported["message"]
