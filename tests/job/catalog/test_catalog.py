import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dgdr_api.shape import Shape
from dgdr_job.catalog import catalog as catalog_module
from dgdr_job.catalog.aic import PerformanceModel
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.quantization import Quantization
from dgdr_job.catalog.wheel import wheel_path

QWEN = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")
DEEPSEEK = PerfIdentity("deepseek-ai/DeepSeek-R1", "h200_sxm", "sglang", "0.5.14")


def fresh(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """Another catalog over the same files, which cannot open the performance model."""

    def no_model() -> None:
        raise AssertionError("the performance model was opened")

    monkeypatch.setattr(catalog_module, "_aic", no_model)
    return Catalog(catalog.cache)


def test_shipped_models_are_sorted_ids(catalog: Catalog) -> None:
    models = catalog.shipped_models()
    assert models == sorted(models)
    assert "deepseek-ai/DeepSeek-R1" in models


def test_hardware_is_described(catalog: Catalog) -> None:
    h200 = catalog.hardware("h200_sxm")
    assert (h200.memory_bytes, h200.memory_bytes_per_s, h200.gpus_per_node) == (151_397_597_184, 4.8e12, 8)
    assert (h200.gpus_per_rack, h200.sm_version, h200.power_watts) == (None, 90, 700.0)
    gb200 = catalog.hardware("gb200")
    assert (gb200.gpus_per_node, gb200.gpus_per_rack) == (4, 72)


def test_version_slots_are_literal(catalog: Catalog) -> None:
    assert catalog.version_slots("h200_sxm", "vllm") == {"current": "0.24.0", "next": "0.27.0"}
    assert catalog.version_slots("a100_sxm", "sglang") == {"current": "0.5.10"}
    assert catalog.version_slots("l4", "vllm") == {}


def test_kv_tokens_of_a_shape(catalog: Catalog) -> None:
    estimate = catalog.kv(QWEN, Shape(tp=2), 8192)
    assert (estimate.tokens_per_rank, estimate.memory_fraction, estimate.fraction_kind) == (774_652, 0.92, "of_total")
    assert estimate.kv_bytes_per_token == 131_072
    assert estimate.weights_gib == pytest.approx(30.66, abs=0.5)
    assert estimate.reason is None
    assert catalog.kv(QWEN, Shape(tp=2), 32_768).tokens_per_rank == 754_684
    assert catalog.kv(QWEN, Shape(tp=2), 8192, 0.5).tokens_per_rank < 774_652 / 2


def test_a_budget_is_what_the_parts_leave(catalog: Catalog) -> None:
    found = catalog.kv(QWEN, Shape(tp=4), 8192)
    parts = found.weights_gib + found.activations_gib + found.runtime_gib + found.communication_gib
    left = found.capacity_gib * found.memory_fraction - parts
    assert found.tokens_per_rank == int(left * 2**30 / found.kv_bytes_per_token)


def test_weights_that_do_not_fit_are_zero_tokens_with_a_reason(catalog: Catalog) -> None:
    estimate = catalog.kv(DEEPSEEK, Shape(), 8192)
    assert estimate.tokens_per_rank == 0
    assert estimate.weights_gib > 600
    assert estimate.reason is not None
    assert estimate.reason.startswith(f"weights {estimate.weights_gib:.2f} GiB and buffers ")
    assert "GiB leave no KV cache in 141.00 GiB at memory fraction 0.907 on h200_sxm, shape tp1" in estimate.reason


def test_default_memory_fractions_are_the_backends(catalog: Catalog) -> None:
    assert catalog.default_memory_fraction(QWEN, Shape(tp=2)) == 0.92
    older = PerfIdentity("Qwen/Qwen3-32B", "a100_sxm", "vllm", "0.14.0")
    assert catalog.default_memory_fraction(older, Shape(tp=2)) == 0.9
    trtllm = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "trtllm", "1.3.0rc20")
    assert catalog.default_memory_fraction(trtllm, Shape(tp=2)) == 0.9
    assert catalog.kv(trtllm, Shape(tp=2), 8192).fraction_kind == "of_free"
    ranks = catalog.default_memory_fraction(DEEPSEEK, Shape(attention_dp=8, moe_ep=8))
    assert ranks < catalog.default_memory_fraction(DEEPSEEK, Shape(tp=8, moe_ep=8)) < 0.93


def test_an_illegal_shape_is_refused_each_time(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in (catalog, catalog, fresh(catalog, monkeypatch)):
        with pytest.raises(Unsupported) as refused:
            asked.kv(QWEN, Shape(tp=3), 8192)
        assert refused.value.reason == Reason.NO_LEGAL_SHAPE


def test_what_was_asked_once_is_answered_without_the_performance_model(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.1.0")

    def answers(asked: Catalog) -> list[object]:
        refusals = []
        for refused in (lambda: asked.quantization(unknown), lambda: asked.hardware("h200")):
            with pytest.raises(Unsupported) as error:
                refused()
            refusals.append((error.value.reason, error.value.message))
        return [
            asked.model("Qwen/Qwen3-32B"),
            asked.hardware("h200_sxm"),
            asked.version_slots("h200_sxm", "vllm"),
            asked.quantization(DEEPSEEK),
            asked.data_provenance(DEEPSEEK),
            asked.default_memory_fraction(DEEPSEEK, Shape(tp=8, moe_ep=8)),
            asked.kv(DEEPSEEK, Shape(tp=8, moe_ep=8), 8192),
            asked.kv(DEEPSEEK, Shape(), 8192),
            refusals,
        ]

    first = answers(catalog)
    assert answers(fresh(catalog, monkeypatch)) == first
    assert first[3] == Quantization(
        "fp8_block", "fp8_block", "fp8", "bfloat16", "half", inferred=(("attention", "fp8"),)
    )


def test_provenance_names_tables_of_the_model_only(catalog: Catalog) -> None:
    dense = catalog.data_provenance(QWEN)
    assert (dense.wheel_version, dense.borrowed_tables, dense.filled_tables, dense.notes) == (
        "0.12.0",
        (),
        ("custom_allreduce",),
        (),
    )
    assert catalog.data_provenance(DEEPSEEK).filled_tables == ("custom_allreduce", "mla_bmm", "moe")


def test_provenance_does_not_depend_on_what_the_process_opened_before() -> None:
    one = PerformanceModel(DEEPSEEK).provenance
    assert PerformanceModel(DEEPSEEK).provenance == one
    assert any("mla_bmm_perf.parquet" in note for note in one.notes)


def test_a_table_without_rows_of_its_own_version_is_borrowed() -> None:
    performance = PerformanceModel(PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.27.0"))
    assert "gemm" in performance.provenance.borrowed_tables
    shares = performance.worker(Shape()).prefill_shares(1, 3000)
    assert shares.silicon == 0
    assert shares.borrowed > 0.8


def test_a_moved_directory_is_still_known_and_a_changed_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = json.loads((wheel_path() / "model_configs" / "Qwen--Qwen3-0.6B_config.json").read_text())

    def folder(name: str, layers: int) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
        return str(tmp_path / name)

    first = Catalog(DiskCache(tmp_path / "cache"))
    tokens = first.kv(PerfIdentity(folder("a", 28), "h200_sxm", "vllm", "0.24.0"), Shape(), 8192).tokens_per_rank
    changed = first.kv(PerfIdentity(folder("c", 14), "h200_sxm", "vllm", "0.24.0"), Shape(), 8192).tokens_per_rank
    assert changed > 1.9 * tokens
    moved = fresh(first, monkeypatch)
    copy = PerfIdentity(folder("b", 28), "h200_sxm", "vllm", "0.24.0")
    assert moved.kv(copy, Shape(), 8192).tokens_per_rank == tokens


def test_two_catalogs_add_to_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Catalog(DiskCache(tmp_path)), Catalog(DiskCache(tmp_path))
    found = [one.kv(QWEN, Shape(), 8192), two.kv(QWEN, Shape(tp=2), 8192), one.kv(QWEN, Shape(tp=4), 8192)]
    again = fresh(one, monkeypatch)
    assert [again.kv(QWEN, Shape(tp=tp), 8192) for tp in (1, 2, 4)] == found


def test_memory_written_together_is_one_write_even_when_the_work_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(DiskCache(tmp_path))

    def failing() -> None:
        with catalog.written_together(), catalog.written_together():
            catalog.kv(QWEN, Shape(), 8192)
            catalog.kv(QWEN, Shape(tp=2), 8192)
            assert not list(tmp_path.glob("memory/*.json"))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    another = fresh(catalog, monkeypatch)
    assert [another.kv(QWEN, Shape(tp=tp), 8192).tokens_per_rank > 0 for tp in (1, 2)] == [True, True]


@pytest.mark.parametrize("damage", [b"", b"null", b'{"schema":1,"key":{},"value":{"result":{"gemm":1}}}'])
def test_damaged_files_are_computed_again(tmp_path: Path, damage: bytes) -> None:
    expected = Catalog(DiskCache(tmp_path)).quantization(QWEN), Catalog(DiskCache(tmp_path)).kv(QWEN, Shape(), 8192)
    for file in tmp_path.rglob("*.json"):
        file.write_bytes(damage)
    again = Catalog(DiskCache(tmp_path))
    assert (again.quantization(QWEN), again.kv(QWEN, Shape(), 8192)) == expected


def test_a_value_of_another_form_is_computed_again(tmp_path: Path) -> None:
    Catalog(DiskCache(tmp_path)).quantization(QWEN)
    (file,) = (tmp_path / "quantization").iterdir()
    stored = json.loads(file.read_text())
    stored["value"] = {"result": {"gemm": "bfloat16"}}
    file.write_text(json.dumps(stored))
    assert Catalog(DiskCache(tmp_path)).quantization(QWEN).moe == "bfloat16"


def test_importing_the_catalog_and_refusing_a_name_imports_no_performance_model() -> None:
    program = """
import sys
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
try:
    Catalog().model("Qwen/Qwen3-32C")
except Unsupported as error:
    print(error.reason)
print([name for name in ("aiconfigurator_core", "pandas", "pyarrow", "yaml") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_environment()
    )
    assert done.stdout.splitlines() == ["UnknownModel", "[]"]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
