"""`dgdr coverage` over a matrix: the 45 probes of the validation matrix, and what a wrong row says."""

import json
from collections import Counter
from pathlib import Path

import pytest
from dgdr_cli.app import app
from typer.testing import CliRunner

from tests.cli.conftest import Dgdr

DATA = Path(__file__).parents[1] / "data"
MATRIX = DATA / "matrix" / "rows.csv"
HEAD = "model_path,backend,mode,sku,gpu_budget,isl,osl,feature_not_modelled,expected_here\n"
WIDTH = 120


@pytest.fixture(scope="module")
def text() -> list[str]:
    """The lines of the table."""
    ended = CliRunner().invoke(app, ["coverage", "--matrix", str(MATRIX)])
    assert ended.exit_code == 0, ended.output
    return ended.stdout.splitlines()


def test_the_validation_matrix_is_as_expected(dgdr: Dgdr) -> None:
    ended = dgdr("coverage", "--matrix", MATRIX, "-o", "json")
    assert ended.exit_code == 0, ended.output
    rows = json.loads(ended.stdout)
    assert len(rows) == 45
    assert [row for row in rows if not row["asExpected"]] == []
    assert Counter(row["verdict"] for row in rows) == {"supported": 27, "supported-except": 9, "unsupported": 9}
    assert Counter(row["reason"] for row in rows if not row["supported"]) == {
        "MissingOperatorData": 6,
        "UnsupportedDtype": 3,
    }
    features = Counter(name for row in rows for name in row["notModelled"])
    assert features == {
        "kvbm": 1,
        "eagle3": 1,
        "multinode_interconnect": 2,
        "external_endpoint_picker": 4,
        "embedding_cache": 1,
    }
    for row in rows:
        if row["supported"]:
            assert sum(row["shares"].values()) == pytest.approx(1, abs=1e-4)
            assert set(row["shares"]) == {"silicon", "empirical", "estimated", "borrowed"}
    (implausible,) = [row for row in rows if any(flag.startswith("implausible") for flag in row["flags"])]
    assert implausible["model"].endswith("Qwen3-VL-30B-A3B-Instruct-FP8")


def test_the_table_has_one_line_a_tuple_and_numbered_notes(text: list[str]) -> None:
    start = next(at for at, line in enumerate(text) if line.startswith(" ──"))
    table, below = text[start + 1 : start + 46], text[start + 46 :]
    assert all(len(line.rstrip()) <= WIDTH for line in text[:start] + table)
    assert all(line.split()[1] in {"h200_sxm", "h100_sxm", "gb200", "b200_sxm", "a100_sxm"} for line in table)
    assert [line.split()[1] for line in table[:3]] == ["h200_sxm", "h200_sxm", "gb200"]
    notes = [line for line in below if line[:3].strip().isdigit() and line[3:5] == "  "]
    assert [int(line[:3]) for line in notes] == list(range(1, len(notes) + 1))
    nemotron = next(line for line in table if "Nemotron" in line)
    note = notes[int(nemotron.split()[-1]) - 1]
    assert "the MoE table has no row for quant fp8" in note
    assert "Nemotron" not in note
    assert "45 tuples: 27 supported, 9 supported-except, 9 unsupported; all as expected" in text


def test_markdown_holds_the_same_table(dgdr: Dgdr, text: list[str]) -> None:
    lines = dgdr("coverage", "--matrix", MATRIX, "-o", "markdown").stdout.splitlines()
    assert lines[:2] == [
        "| row | model | GPU | tuple | budget | data | verdict | silicon | note |",
        "| --: | --- | --- | --- | --: | --- | --- | --: | --: |",
    ]
    start = next(at for at, line in enumerate(text) if line.startswith(" ──"))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:47]]
    assert [(row[0], row[4]) for row in (cells[0], cells[-1])] == [("1", "16"), ("29", "1")]
    shown = [[cell for cell in (*row[1:4], *row[5:]) if cell] for row in cells]
    assert shown == [line.split() for line in text[start + 1 : start + 46]]


def test_a_verdict_other_than_expected_is_shown(dgdr: Dgdr, tmp_path: Path) -> None:
    matrix = tmp_path / "rows.csv"
    matrix.write_text(
        HEAD
        + "Qwen/Qwen3-32B,vllm,agg,h200_sxm,16,3000,300,,unsupported\n"
        + "Qwen/Qwen3-32B,vllm,agg,h200_sxm,16,3000,300,kvbm eagle3,supported-except\n"
        + "Qwen/Qwen3-32B,vllm,agg,h200_sxm,16,3000,300,,\n"
    )
    ended = dgdr("coverage", "--matrix", matrix)
    assert ended.exit_code == 0
    assert "expected unsupported" in ended.stdout
    assert "2 supported, 1 supported-except, 0 unsupported; 1 other than expected" in ended.stdout
    rows = json.loads(dgdr("coverage", "--matrix", matrix, "-o", "json").stdout)
    assert [row.get("asExpected") for row in rows] == [False, True, None]
    assert rows[1]["notModelled"] == ["kvbm", "eagle3"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("Qwen/Qwen3-32B,vllm,agg,h200_sxm,1,3000,300,kvb,", ["rows.csv:2", "feature_not_modelled", "'kvb'", "kvbm"]),
        ("Qwen/Qwen3-32B,vllm,agg,h200_sxm,1,3000,300,,maybe", ["rows.csv:2", "expected_here", "supported-except"]),
        ("Qwen/Qwen3-32B,tgi,agg,h200_sxm,1,3000,300,,", ["rows.csv:2", "backend 'tgi'"]),
    ],
)
def test_a_wrong_cell_is_named_with_what_is_known(dgdr: Dgdr, tmp_path: Path, row: str, words: list[str]) -> None:
    matrix = tmp_path / "rows.csv"
    matrix.write_text(HEAD + row + "\n")
    ended = dgdr("coverage", "--matrix", matrix)
    assert ended.exit_code == 2, ended.output
    for word in words:
        assert word in ended.stderr


def test_roles_on_gpus_of_their_own(dgdr: Dgdr) -> None:
    options = ("--model", "Qwen/Qwen3-32B", "--sku", "H200", "--prefill-sku", "H100", "--backend", "vllm")
    rows = json.loads(dgdr("coverage", *options, "-o", "json").stdout)
    assert [row["skus"] for row in rows] == [{"agg": "h200_sxm"}, {"prefill": "h100_sxm", "decode": "h200_sxm"}]
    assert "h100_sxm + h200_sxm" in dgdr("coverage", *options).stdout
    wrong = dgdr("coverage", *options, "--topology", "agg")
    assert wrong.exit_code == 2
    assert "--prefill-sku" in wrong.stderr


def test_a_matrix_stands_alone(dgdr: Dgdr) -> None:
    ended = dgdr("coverage", "--matrix", MATRIX, "--sku", "H200", "--data-version", "1")
    assert ended.exit_code == 2
    assert "leave out --sku, --data-version" in ended.stderr


def test_a_model_directory_works_without_the_network(dgdr: Dgdr, tmp_path: Path) -> None:
    model = DATA / "models" / "Llama-3.3-70B-Instruct-FP8-dynamic"
    rows = json.loads(dgdr("coverage", "--model", model, "--sku", "H200", "--backend", "vllm", "-o", "json").stdout)
    assert [row["supported"] for row in rows] == [True, True]
    empty = dgdr("coverage", "--model", tmp_path, "--sku", "H200", "--backend", "vllm")
    assert empty.exit_code == 3
    assert "has no config.json" in empty.stdout
