import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from aiconfigurator_core.sdk import models, perf_database
from aiconfigurator_core.sdk.backends.factory import get_backend
from aiconfigurator_core.sdk.config import ModelConfig, RuntimeConfig
from aiconfigurator_core.sdk.engine import EngineHandle
from dgdr_api.shape import Shape
from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.timing.batches import BATCH_GRID
from dgdr_job.timing.corrections import correct_decode, correct_prefill
from dgdr_job.timing.rows import agg_rows, decode_rows, is_steady, prefill_rows

QWEN = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")
QWEN_MOE = PerfIdentity("Qwen/Qwen3-30B-A3B", "h200_sxm", "vllm", "0.24.0")


def sums_to_one(shares: SourceShares) -> bool:
    return abs(shares.silicon + shares.empirical + shares.estimated + shares.borrowed - 1) < 1e-9


class TestPeersBestRow:
    """Qwen3-32B on h200_sxm with vLLM data 0.24.0, 3000/300: what aiconfigurator 0.12.0 reports for 16 GPUs."""

    def test_prefill_on_one_gpu(self, catalog: Catalog) -> None:
        rows = prefill_rows(catalog, QWEN, Shape(), isl=3000, batches=[1])
        assert rows.latency_ms == pytest.approx([275.03234506], rel=1e-8)
        rates = correct_prefill(rows.batch, rows.latency_ms, ranks=1)
        assert rates.requests_per_s == pytest.approx([3.3054], rel=1e-4)
        assert rates.ttft_ms == pytest.approx([544.56], rel=1e-4)

    def test_decode_on_two_gpus(self, catalog: Catalog) -> None:
        rows = decode_rows(catalog, QWEN, Shape(tp=2), isl=3000, osl=300, batches=[208, 216, 224])
        rates = correct_decode(rows.batch, rows.decode_total_ms, osl=300, ranks=1)
        assert rates.requests_per_s[1] == pytest.approx(18.5182, rel=1e-4)
        assert rates.tpot_ms[1] == pytest.approx(39.011, rel=1e-4)
        assert rates.tpot_ms[2] > 40

    def test_aggregated_on_two_gpus(self, catalog: Catalog) -> None:
        rows = agg_rows(
            catalog, QWEN, Shape(tp=2), isl=3000, osl=300, points=steady(3000, BATCH_GRID[:46], [3000, 6000])
        )
        meets = (rows.ttft_ms <= 1000) & (rows.tpot_ms <= 40)
        best = np.flatnonzero(meets)[np.argmax(rows.requests_per_s[meets])]
        assert (rows.batch[best], rows.ctx_tokens[best]) == (48, 3000)
        # The peer counts the tokens after the first in aggregated serving.
        assert rows.requests_per_s[best] * 299 / 2 == pytest.approx(583.72, rel=1e-4)
        assert rows.ttft_ms[best] == pytest.approx(365.455, rel=1e-4)
        assert rows.tpot_ms[best] == pytest.approx(39.893, rel=1e-4)


def steady(isl: int, batches: Sequence[int], ctx_tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Every steady point of batches and prompt tokens, batches outermost."""
    return [(batch, ctx) for batch in batches for ctx in ctx_tokens if is_steady(isl, batch, ctx)]


class TestReference:
    """The rows beside direct calls through the facade, one by one."""

    @pytest.mark.parametrize(
        ("identity", "shape"),
        [(QWEN, Shape(tp=4)), (QWEN, Shape(tp=2, pp=2)), (QWEN_MOE, Shape(attention_dp=2, moe_ep=2))],
    )
    def test_rows_are_the_facades(self, catalog: Catalog, identity: PerfIdentity, shape: Shape) -> None:
        handle = EngineHandle.compile(
            identity.model,
            identity.sku,
            identity.backend,
            backend_version=identity.data_version,
            tp_size=shape.tp,
            pp_size=shape.pp,
            attention_dp_size=shape.attention_dp,
            moe_tp_size=shape.moe_tp,
            moe_ep_size=shape.moe_ep,
        )
        prefill = prefill_rows(catalog, identity, shape, isl=777, batches=[1, 3])
        assert prefill.latency_ms.tolist() == [handle.predict_prefill_latency(b, 777) for b in (1, 3)]
        decode = decode_rows(catalog, identity, shape, isl=777, osl=65, batches=[1, 5, 100])
        assert decode.decode_total_ms.tolist() == [handle.predict_decode_latency(b, 777, 65) for b in (1, 5, 100)]

        config = ModelConfig(
            tp_size=shape.tp,
            pp_size=shape.pp,
            attention_dp_size=shape.attention_dp,
            moe_tp_size=shape.moe_tp,
            moe_ep_size=shape.moe_ep,
        )
        model = models.get_model(identity.model, config, identity.backend)
        database = perf_database.get_database(identity.sku, identity.backend, identity.data_version)
        assert database is not None
        rows = agg_rows(catalog, identity, shape, isl=777, osl=65, points=steady(777, [1, 5, 100], [777, 2048, 8192]))
        assert list(zip(rows.batch, rows.ctx_tokens, strict=True)) == [
            (1, 777),
            (5, 777),
            (5, 2048),
            (100, 777),
            (100, 2048),
            (100, 8192),
        ]
        for row, (batch, ctx) in enumerate(zip(rows.batch.tolist(), rows.ctx_tokens.tolist(), strict=True)):
            runtime = RuntimeConfig(batch_size=batch, beam_width=1, isl=777, osl=65, prefix=0)
            summary = get_backend(identity.backend).run_agg(model, database, runtime, ctx_tokens=ctx)
            result = summary.get_result_dict()
            assert result is not None
            assert rows.ttft_ms[row] == result["ttft"]
            assert rows.tpot_ms[row] == result["tpot"]
            assert rows.requests_per_s[row] == result["request_rate"]


def test_a_steady_state_has_another_request_to_decode() -> None:
    assert steady(3000, [1, 2, 4], [1000, 3000, 3001, 8192]) == [
        (1, 1000),
        (1, 3000),
        (2, 1000),
        (2, 3000),
        (4, 1000),
        (4, 3000),
        (4, 3001),
        (4, 8192),
    ]
    assert steady(3000, [1, 2, 3], [0, -5, 8192]) == []


def test_no_point_means_no_rows(catalog: Catalog) -> None:
    rows = agg_rows(catalog, QWEN, Shape(), isl=3000, osl=300, points=steady(3000, [1, 2], [8192]))
    assert (rows.batch.size, rows.ttft_ms.size, rows.requests_per_s.size) == (0, 0, 0)
    assert sums_to_one(rows.shares)


def test_shares_sum_to_one_and_are_mostly_silicon(catalog: Catalog) -> None:
    prefill = prefill_rows(catalog, QWEN, Shape(tp=2), isl=3000, batches=[1])
    decode = decode_rows(catalog, QWEN, Shape(tp=2), isl=3000, osl=300, batches=BATCH_GRID)
    agg = agg_rows(catalog, QWEN, Shape(tp=2), isl=3000, osl=300, points=steady(3000, BATCH_GRID, [8192]))
    for shares in (prefill.shares, decode.shares, agg.shares):
        assert sums_to_one(shares)
        assert 0.8 < shares.silicon < 1
        assert shares.borrowed == 0
    assert decode.shares.silicon == pytest.approx(0.962, abs=0.01)


def test_columns_cannot_be_changed(catalog: Catalog) -> None:
    rows = prefill_rows(catalog, QWEN, Shape(), isl=3000, batches=[1])
    with pytest.raises(ValueError, match="read-only"):
        rows.latency_ms[0] = 0


def test_a_shape_without_data_is_refused_when_asked_and_when_remembered(catalog: Catalog) -> None:
    nvfp4 = PerfIdentity("nvidia/Qwen3-235B-A22B-NVFP4", "h200_sxm", "vllm", "0.24.0")
    for asked in (catalog, Catalog(catalog.cache)):
        with pytest.raises(Unsupported) as refused:
            decode_rows(asked, nvfp4, Shape(tp=8, moe_ep=8), isl=3000, osl=300, batches=[1])
        assert refused.value.reason == Reason.MISSING_OPERATOR_DATA


def test_one_output_token_has_prefill_and_aggregated_rows(catalog: Catalog) -> None:
    decode = decode_rows(catalog, QWEN, Shape(tp=2), isl=3000, osl=1, batches=[1, 8])
    assert decode.decode_total_ms.tolist() == [0.0, 0.0]
    agg = agg_rows(catalog, QWEN, Shape(tp=2), isl=3000, osl=1, points=steady(3000, [4], [3000]))
    assert agg.tpot_ms.tolist() == [0.0]
    assert agg.requests_per_s[0] == pytest.approx(6.34, rel=0.01)


PROGRAM = """
import sys
from dgdr_api.shape import Shape
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.timing.batches import BATCH_GRID, max_batch
from dgdr_job.timing.rows import agg_rows, decode_rows, is_steady, prefill_rows

catalog = Catalog()
identity = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")
facts = catalog.model(identity.model)
print(catalog.quantization(identity), catalog.data_provenance(identity), catalog.hardware(identity.sku))
for tp in (1, 2):
    shape = Shape(tp=tp)
    kv = catalog.kv(identity, shape, 8192)
    batches = [b for b in BATCH_GRID if b <= max_batch(kv.tokens_per_rank, 3300)]
    print(prefill_rows(catalog, identity, shape, isl=3000, batches=[1]).latency_ms.tolist())
    print(decode_rows(catalog, identity, shape, isl=3000, osl=300, batches=batches).decode_total_ms.tolist())
    points = [(b, c) for b in batches for c in (8192, 16384) if is_steady(3000, b, c)]
    rows = agg_rows(catalog, identity, shape, isl=3000, osl=300, points=points)
    print(rows.ttft_ms.tolist(), rows.requests_per_s.tolist(), rows.shares, rows.plausibility)
print([name for name in ("aiconfigurator_core", "pandas", "pyarrow", "yaml") if name in sys.modules])
"""


def test_a_warm_search_imports_no_performance_model(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "DGDR_CACHE_DIR": str(tmp_path),
    }

    def run() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    cold, warm = run(), run()
    assert cold[-1] == "['aiconfigurator_core', 'pandas', 'pyarrow', 'yaml']"
    assert warm[-1] == "[]"
    assert warm[:-1] == cold[:-1]
    assert len(list(tmp_path.rglob("*.json"))) < 20


def test_what_is_read_is_what_was_computed(catalog: Catalog, tmp_path: Path) -> None:
    lengths = {"isl": 500, "osl": 20, "batches": [1, 2, 64]}
    computed = decode_rows(Catalog(DiskCache(tmp_path)), QWEN, Shape(tp=8), **lengths)  # type: ignore[arg-type]
    read = decode_rows(Catalog(DiskCache(tmp_path)), QWEN, Shape(tp=8), **lengths)  # type: ignore[arg-type]
    assert read.decode_total_ms.tolist() == computed.decode_total_ms.tolist()
    assert (read.shares, read.plausibility, read.batch.tolist()) == (
        computed.shares,
        computed.plausibility,
        computed.batch.tolist(),
    )
