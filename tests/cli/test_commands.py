"""space, coverage, render, verify, catalog and schema as a user sees them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dgdr_cli import catalog
from dgdr_publisher.errors import (
    DocumentError,
    EventError,
    NotRenderableError,
    ReadBackDifferenceError,
    RenderError,
    StoreError,
)

from tests.cli.conftest import Dgdr, Write


@pytest.mark.parametrize("command", ["search", "coverage", "space", "render", "verify", "catalog", "schema"])
def test_every_command_has_help_with_an_example(dgdr: Dgdr, command: str) -> None:
    ended = dgdr(command, "--help")
    assert ended.exit_code == 0
    assert f"Example: dgdr {command}" in ended.stdout


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; import dgdr_cli.app; "
        "heavy = {'pydantic', 'numpy', 'kubernetes', 'pandas', 'pyarrow', 'jinja2', 'rich.progress'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_program_imports_next_to_nothing_before_it_hears_signals() -> None:
    program = "import sys; import dgdr_cli.main; print(sorted({'typer', 'rich', 'inspect'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_space_reproduces_the_sizes_of_sixteen_gpus(dgdr: Dgdr, write: Write) -> None:
    ended = dgdr("space", write(), "-o", "json")
    assert ended.exit_code == 0, ended.output
    branches = {branch["name"]: branch for branch in json.loads(ended.stdout)["branches"]}
    assert branches["vllm/disagg"]["shapes"] == {"prefill": 5, "decode": 5}
    assert (branches["vllm/disagg"]["pairs"], branches["vllm/disagg"]["pool"]) == (367, 29_727)
    assert branches["vllm/agg"]["shapes"] == {"agg": 5}
    assert (branches["vllm/agg"]["pairs"], branches["vllm/agg"]["pool"]) == (31, 279)


def test_space_says_what_the_kv_gate_removes(dgdr: Dgdr, write: Write) -> None:
    long = {"isl": 120_000, "osl": 8_000, "saturated": True}
    request = write(spec__workload__static=long, spec__modelRef__name="meta-llama/Meta-Llama-3.1-70B")
    gated = json.loads(dgdr("space", request, "-o", "json").stdout)["branches"][0]
    free = json.loads(dgdr("space", request, "--no-kv-gate", "-o", "json").stdout)["branches"][0]
    (removed,) = [each for each in gated["removed"] if each["reason"] == "kv_capacity"]
    assert removed["count"] == free["pairs"] - gated["pairs"] > 0
    assert "128,000" in removed["detail"]


def test_space_says_that_no_worker_counts_keep_the_limits(dgdr: Dgdr, write: Write) -> None:
    """One worker of at most 4 GPUs a role, by 7 GPUs and one worker: no sum of two reaches 12, though 7 + 7 does."""
    of_one = {"gpus": 7, "workers": 1}
    caps = {f"max_{role}_{unit}": most for role in ("prefill", "decode") for unit, most in of_one.items()}
    request = write(
        spec__hardware__gpu__minBudget=12,
        spec__search__topologies=["disagg"],
        spec__search__parameters={"search_space": caps},
    )
    (branch,) = json.loads(dgdr("space", request, "-o", "json").stdout)["branches"]
    assert branch["pairs"] == 0
    too_wide, no_counts = [each for each in branch["removed"] if each["reason"] == "gpu_budget"]
    assert too_wide["count"] + no_counts["count"] == 25
    assert no_counts["detail"].endswith(
        "make at least 12 (hardware.gpu.minBudget) and at most 16 GPUs (the budget) "
        "with at most 7 prefill GPUs, at most 7 decode GPUs, at most 1 prefill workers, at most 1 decode workers, "
        "e.g. tp1 + tp1"
    )


def test_coverage_asks_once_what_is_given_under_two_names(dgdr: Dgdr) -> None:
    options = ("--model", "Qwen/Qwen3-32B", "--backend", "vllm", "--backend", "vllm", "--topology", "agg")
    ended = dgdr("coverage", *options, "--sku", "H200", "--sku", "h200_sxm", "-o", "json")
    assert [(row["backend"], row["topology"]) for row in json.loads(ended.stdout)] == [("vllm", "agg")]


def test_coverage_answers_per_tuple_with_the_specific_reason(dgdr: Dgdr) -> None:
    options = ("--model", "Qwen/Qwen3-32B-FP8", "--sku", "A100", "--sku", "H100-SXM5-80GB", "--backend", "sglang")
    ended = dgdr("coverage", *options, "-o", "json")
    assert ended.exit_code == 0, ended.output
    rows = json.loads(ended.stdout)
    found = {(next(iter(row["skus"].values())), row["topology"]): row["reason"] for row in rows}
    assert found == {
        ("a100_sxm", "agg"): "UnsupportedDtype",
        ("a100_sxm", "disagg"): "UnsupportedDtype",
        ("h100_sxm", "agg"): "Supported",
        ("h100_sxm", "disagg"): "Supported",
    }


def test_coverage_of_nothing_supported_ends_with_three(dgdr: Dgdr) -> None:
    ended = dgdr("coverage", "--model", "no/such-model", "--sku", "H200", "--backend", "vllm")
    assert ended.exit_code == 3
    assert "UnknownModel" in ended.stdout


def test_coverage_reads_a_matrix_and_names_what_is_wrong_in_it(dgdr: Dgdr, tmp_path: Path) -> None:
    matrix = tmp_path / "rows.csv"
    head = "model_path,backend,mode,sku,gpu_budget,isl,osl\n"
    matrix.write_text(head + "Qwen/Qwen3-32B,vllm,agg,h200_sxm,16,3000,300\n")
    ended = dgdr("coverage", "--matrix", matrix, "-o", "json")
    assert [row["reason"] for row in json.loads(ended.stdout)] == ["Supported"]
    matrix.write_text(head + "Qwen/Qwen3-32B,vllm,agg,h200_sxm,many,3000,300\n")
    wrong = dgdr("coverage", "--matrix", matrix)
    assert wrong.exit_code == 2
    assert "rows.csv:2" in wrong.output
    assert "gpu_budget" in wrong.output


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("Qwen/Qwen3-32B,vllm", ["rows.csv:2", "gpu_budget"]),
        ("Qwen/Qwen3-32B,vllm,agg,h200_sxm,65537,3000,300", ["rows.csv:2", "gpu_budget", "65,536"]),
        ("Qwen/Qwen3-32B,vllm,agg,h200_sxm,1,3000," + "9" * 5000, ["rows.csv:2", "osl"]),
        ("Qwen/Qwen3-32B,vllm,agg,H2000,1,3000,300", ["rows.csv", "H2000"]),
        ("x" * 200_000 + ",vllm,agg,h200_sxm,1,3000,300", ["rows.csv:2", "field"]),
    ],
)
def test_a_wrong_row_of_a_matrix_is_named(dgdr: Dgdr, tmp_path: Path, row: str, words: list[str]) -> None:
    matrix = tmp_path / "rows.csv"
    matrix.write_text(f"model_path,backend,mode,sku,gpu_budget,isl,osl\n{row}\n")
    ended = dgdr("coverage", "--matrix", matrix)
    assert ended.exit_code == 2, ended.output
    for word in words:
        assert word in ended.stderr


def test_a_cache_that_cannot_be_written_is_told_once(
    dgdr: Dgdr, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DGDR_CACHE_DIR", str(tmp_path / "file"))
    ended = dgdr("space", write(), "-o", "json")
    assert ended.exit_code == 0, ended.output
    assert ended.stderr.count("results are not cached") == 1
    json.loads(ended.stdout)


def test_catalog_resolves_what_people_type(dgdr: Dgdr) -> None:
    rows = json.loads(dgdr("catalog", "skus", "-o", "json").stdout)
    h200 = next(row for row in rows if row["name"] == "h200_sxm")
    assert (h200["gpusPerNode"], h200["performanceData"]) == (8, True)
    models = json.loads(dgdr("catalog", "models", "-o", "json").stdout)
    assert {"model": "Qwen/Qwen3-32B"} in models
    versions = json.loads(dgdr("catalog", "versions", "-o", "json").stdout)
    chain = next(row for row in versions if (row["backend"], row["runtime"]) == ("sglang", "1.4.2"))
    assert chain["engine"] == "0.5.16"
    assert "h200_sxm" in chain["performanceData"]


@pytest.mark.parametrize("document", ["request", "run", "candidate", "replay-spec", "events", "config"])
def test_schema_is_json_schema(dgdr: Dgdr, document: str) -> None:
    made = json.loads(dgdr("schema", document).stdout)
    assert made["$schema"].startswith("https://json-schema.org/")


def test_render_and_verify_agree_and_a_changed_value_is_found(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    request, out = write(), tmp_path / "out"
    assert dgdr("search", request, "--out", out).exit_code == 0
    name = yaml.safe_load((out / "run.yaml").read_text())["status"]["candidateRefs"][0]["name"]
    candidate = out / "candidates" / f"{name}.yaml"
    assert dgdr("verify", out / "dgd.yaml", candidate).exit_code == 0
    assert dgdr("render", candidate, "--request", request).stdout == (out / "dgd.yaml").read_text()
    text = (out / "dgd.yaml").read_text()
    changed = tmp_path / "changed.yaml"
    changed.write_text(text.replace("replicas: 8", "replicas: 7"))
    assert changed.read_text() != text
    ended = dgdr("verify", changed, candidate)
    assert ended.exit_code == 3
    assert "7" in ended.stdout


def test_materialization_names_a_place_or_a_reason_for_every_value(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    request, out = write(), tmp_path / "out"
    assert dgdr("search", request, "--out", out).exit_code == 0
    candidate = next((out / "candidates").iterdir())
    ended = dgdr("render", candidate, "--request", request, "--materialization", "-o", "json")
    rows = json.loads(ended.stdout)
    assert all(("destination" in row) != ("reason" in row) for row in rows)
    assert len(rows) > 20


def test_a_document_that_is_no_candidate_is_refused(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("kind: Pod\n")
    ended = dgdr("render", other, "--request", write())
    assert ended.exit_code == 2
    assert "Pod" in ended.output


NOT_A_LABEL = ["Foo Bar", "-x", "", "UP", "a.b", "a\n", "a\nb", "grün", "x" * 64]


@pytest.mark.parametrize("name", NOT_A_LABEL)
def test_a_deployment_is_named_by_a_dns_label(dgdr: Dgdr, tmp_path: Path, name: str) -> None:
    """The name is looked at first: neither file exists."""
    ended = dgdr("render", tmp_path / "c.yaml", "--request", tmp_path / "r.yaml", f"--dgd-name={name}")
    assert ended.exit_code == 2
    assert f"--dgd-name {name!r}" in ended.stderr
    assert "DNS label" in ended.stderr
    assert ended.stdout == ""


def test_a_name_that_leaves_no_room_for_components_is_refused(dgdr: Dgdr, write: Write, tmp_path: Path) -> None:
    ended = dgdr("render", tmp_path / "none.yaml", "--request", write(), f"--dgd-name={'x' * 63}")
    assert ended.exit_code == 2
    assert "--dgd-name 'xxx" in ended.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotRenderableError("candidate.planner", "x", "no"), 3),
        (ReadBackDifferenceError(["replicas"]), 3),
        (RenderError("no"), 3),
        (DocumentError("no"), 2),
        (EventError("no"), 4),
        (StoreError("no"), 4),
        (PermissionError(13, "Permission denied", "file"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_the_exit_code_of_an_error(
    dgdr: Dgdr, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def broken() -> None:
        raise error

    monkeypatch.setattr(catalog, "_skus", broken)
    assert dgdr("catalog", "skus").exit_code == code


def test_an_internal_error_is_a_message_not_a_trace(dgdr: Dgdr, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("wrong turn")

    monkeypatch.setattr(catalog, "_skus", broken)
    ended = dgdr("catalog", "skus")
    assert ended.exit_code == 4
    assert "ZeroDivisionError: wrong turn" in ended.output
    assert "Traceback" not in ended.output
