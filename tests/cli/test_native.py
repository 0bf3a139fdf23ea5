"""`dgdr search --config`: a native configuration, with the files of any search."""

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from dgdr_api.defaults import run_spec
from dgdr_api.parse import parse_request
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains

from tests.cli.conftest import Dgdr
from tests.conftest import ROOT

NATIVE: dict[str, Any] = {
    "search_space": {"model_name": "Qwen/Qwen3-32B", "hardware_sku": "H200", "gpu_budget": 8, "backend": ["sglang"]},
    "workload": {"isl": 3000, "osl": 300, "saturated": True},
    "goal": {"metrics": ["throughputPerGpu"], "sla": {"ttft_ms": 1000, "itl_ms": 40}},
    "sweep": {"fidelity": "static"},
}
FILES = ["candidates", "dgd.mapping.yaml", "dgd.yaml", "events.ndjson", "points.parquet", "run.yaml"]


def put(path: Path, **space: Any) -> Path:
    path.write_text(yaml.safe_dump({**NATIVE, "search_space": {**NATIVE["search_space"], **space}}))
    return path


def points(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO((out / "points.parquet").read_bytes())).to_pylist()
    for row in rows:  # the name of the request begins the name of a candidate, the hash of the point ends it
        row["publication"] = (row["publication"] or "").rpartition("-")[2]
    return rows


@pytest.mark.parametrize("example", ["qwen3-32b-sglang", "heterogeneous"])
def test_a_request_and_the_native_form_mapped_from_it_find_the_same(dgdr: Dgdr, tmp_path: Path, example: str) -> None:
    request = ROOT / "examples" / f"{example}.yaml"
    spec = run_spec(parse_request(request.read_text()).spec)
    data = {backend: each.performance_data for backend, each in version_chains(spec).items()}
    native = tmp_path / "native.yaml"
    native.write_text(yaml.safe_dump(search_config(spec, data).model_dump(mode="json")))
    for name, given in (("request", [request]), ("native", ["--config", native])):
        ended = dgdr("search", *given, "--out", tmp_path / name)
        assert ended.exit_code == 0, ended.output
    assert points(tmp_path / "native") == points(tmp_path / "request")
    specs = [yaml.safe_load((tmp_path / name / "dgd.yaml").read_text())["spec"] for name in ("request", "native")]
    assert specs[0] == specs[1]


def test_it_leaves_the_files_of_any_search_which_verify_takes(dgdr: Dgdr, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = dgdr("search", "--config", put(tmp_path / "native.yaml"), "--out", out)
    assert ended.exit_code == 0, ended.output
    assert sorted(path.name for path in out.iterdir()) == FILES
    run = yaml.safe_load((out / "run.yaml").read_text())
    assert run["spec"]["runtime"]["image"] == "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.3.1"
    bound = next(each for each in run["status"]["conditions"] if each["type"] == "VersionBound")
    assert (bound["status"], bound["reason"]) == ("True", "Bound")
    best = out / "candidates" / f"{run['status']['candidateRefs'][0]['name']}.yaml"
    assert dgdr("verify", out / "dgd.yaml", best).exit_code == 0
    run_file = out / "run.yaml"
    assert dgdr("verify", out / "dgd.yaml", best, "--request", run_file).exit_code == 0
    rendered = dgdr("render", best, "--request", run_file)
    assert yaml.safe_load(rendered.stdout) == yaml.safe_load((out / "dgd.yaml").read_text())
    (tmp_path / "other.yaml").write_text(run_file.read_text().replace("sweeper.dgdr.dev/request-name", "other"))
    nameless = dgdr("render", best, "--request", tmp_path / "other.yaml")
    assert nameless.exit_code == 2
    assert "metadata.annotations has no sweeper.dgdr.dev/request-name" in nameless.stderr
    again = dgdr("search", "--config", put(tmp_path / "native.yaml"), "--out", out, "--resume")
    assert again.exit_code == 0, again.output
    other = dgdr("search", "--config", put(tmp_path / "native.yaml", gpu_budget=4), "--out", out, "--resume")
    assert other.exit_code == 2
    assert "is of another request" in other.stderr


def test_data_that_no_image_carries_is_searched_and_not_rendered(dgdr: Dgdr, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = dgdr("search", "--config", put(tmp_path / "native.yaml", backend=["vllm"]), "--out", out, "-o", "json")
    assert ended.exit_code == 3, ended.output
    assert "no known Dynamo runtime carries these engines, so nothing will be rendered" in ended.stderr
    status = yaml.safe_load((out / "run.yaml").read_text())["status"]
    assert status["outcome"]["reason"] == "NothingRenderable"
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert conditions["Supported"] == ("True", "AllTuples")
    assert conditions["VersionBound"] == ("False", "PerfDataPinned")
    assert conditions["Published"] == ("False", "NothingRenderable")
    assert sum(row["status"] == "feasible" for row in points(out)) > 0
    assert not (out / "dgd.yaml").exists()


def test_a_model_of_its_own_lies_beside_the_file(dgdr: Dgdr, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    config = ROOT / "tests" / "data" / "models" / "llama-fp8-dynamic" / "config.json"
    (folder / "config.json").write_bytes(config.read_bytes())
    native = put(tmp_path / "native.yaml", model_name="me/llama", model_config_path="models")
    ended = dgdr("space", "--config", native)
    assert ended.exit_code == 0, ended.output
    assert "sglang/agg" in ended.stdout
    (folder / "config.json").write_text("{}")
    ended = dgdr("search", "--config", native, "--out", tmp_path / "out")
    assert ended.exit_code == 3
    assert "UnknownModel: search_space.model_config_path models: config.json: architectures must name" in ended.stderr
    for path, code, message in (
        ("../models", 2, "search_space.model_config_path: ../models must be a path without a .. segment"),
        ("none", 3, "search_space.model_config_path none: is no directory; name one with a config.json"),
    ):
        ended = dgdr("space", "--config", put(tmp_path / "native.yaml", model_config_path=path))
        assert ended.exit_code == code
        assert message in ended.stderr


def test_the_command_line_sets_the_configurations_keys(dgdr: Dgdr, tmp_path: Path) -> None:
    out, native = tmp_path / "out", put(tmp_path / "native.yaml")
    options = ["--seed", "7", "--max-duration", "1h30m", "--parallel", "2"]
    ended = dgdr("search", "--config", native, "--out", out, *options)
    assert ended.exit_code == 0, ended.output
    spec = yaml.safe_load((out / "run.yaml").read_text())["spec"]
    assert spec["search"]["parameters"]["sweep"]["seed"] == 7
    assert spec["search"]["budget"]["maxDuration"] == "5400s"
    assert spec["search"]["budget"]["parallelEvaluations"] == 2
    ended = dgdr("search", "--config", native, "--out", tmp_path / "none", "--fidelity", "replay")
    assert ended.exit_code == 2
    assert "workload.saturated: saturated needs search.fidelity static" in ended.stderr
    ended = dgdr("search", "--config", native, "--out", tmp_path / "none", "--max-duration", "soon")
    assert ended.exit_code == 2
    assert "--max-duration soon: must be a duration above 0, e.g. 90s or 1h30m" in ended.stderr


def test_one_search_at_a_time(dgdr: Dgdr, tmp_path: Path) -> None:
    native, out = put(tmp_path / "native.yaml"), tmp_path / "out"
    both = dgdr("search", native, "--config", native, "--out", out)
    assert (both.exit_code, out.exists()) == (2, False)
    assert "are two searches; give a request or a configuration" in both.stderr
    neither = dgdr("search", "--out", out)
    assert (neither.exit_code, out.exists()) == (2, False)
    assert "nothing to search: give a request file, or a native configuration by --config FILE" in neither.stderr
    folder = dgdr("search", "--config", native, "--mount", f"a={tmp_path}", "--out", out)
    assert folder.exit_code == 2
    assert "--config-map and --mount belong to a request" in folder.stderr


def test_what_is_wrong_names_the_file_and_the_key(dgdr: Dgdr, tmp_path: Path) -> None:
    ended = dgdr("space", "--config", put(tmp_path / "native.yaml", gpu_bugdet=4))
    assert ended.exit_code == 2
    assert "native.yaml: is not valid" in ended.stderr
    assert "search_space.gpu_bugdet: is no key of the engine; near: gpu_budget" in ended.stderr
