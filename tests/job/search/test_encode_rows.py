"""Rows of encode workers: the memory gate, batches that are worth their latency, and flags (engine.md section 6)."""

from typing import Any

import numpy as np
import pytest
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.search.config import Encode, RateMatching, Workload
from dgdr_job.search.encode_rows import encode, worthwhile
from dgdr_job.search.role_rows import NoRow, RoleInput, Rows
from dgdr_job.space.encode_shapes import expressible_batches
from dgdr_job.space.knobs import RoleKnobs
from dgdr_job.timing.encoder import EncoderRows, EncodeWorkerRows
from dgdr_job.timing.plausibility import EncoderPlausibility
from hypothesis import given
from hypothesis import strategies as st

MODEL = "Qwen/Qwen3-VL-32B-Instruct"
IMAGES = Images(1024, 1024)
WORKLOAD = Workload(isl=2000, osl=300, saturated=True, visual_tokens=1024)
VERSIONS: dict[Backend, str] = {"vllm": "0.24.0", "sglang": "0.5.14", "trtllm": "1.3.0rc20"}


def worker(memory_gib: list[float], latency_ms: list[float], *, capacity_gib: float = 20.0) -> EncodeWorkerRows:
    """An encode worker with 5 GiB beside the encoder, whose weights are 1 GiB of the memory of each batch."""
    count = len(memory_gib)
    return EncodeWorkerRows(
        passes=EncoderRows(
            batch=np.arange(count),
            latency_ms=np.array(latency_ms),
            activations_gib=np.array(memory_gib) - 1.0,
            weights_gib=1.0,
            shares=SourceShares(1.0, 0.0, 0.0, 0.0),
            plausibility=EncoderPlausibility(2.0, 1.0, is_implausible=False),
        ),
        runtime_gib=3.5,
        communication_gib=1.5,
        capacity_gib=capacity_gib,
    )


def rows(
    catalog: Catalog,
    backend: Backend = "vllm",
    *,
    tp: int = 1,
    batches: tuple[int, ...] = (1, 2, 4, 8),
    ttft_factor: float = 1.0,
    **encode_options: Any,
) -> Rows:
    role = RoleInput(
        "encode",
        PerfIdentity(MODEL, "h200_sxm", backend, VERSIONS[backend]),
        (Shape(tp=tp),),
        RoleKnobs((8192,), batches, (1,), (False,)),
        3324,
        images=IMAGES,
        encode=Encode(**encode_options),
        ttft_factor=ttft_factor,
    )
    return encode(catalog, role, Shape(tp=tp), WORKLOAD, RateMatching())[1]


def test_w6_memory_that_reaches_the_gpu_ends_the_split() -> None:
    """20 GiB, 5 GiB of overhead: 10 GiB fit, 15 GiB reach the 20 exactly, so only batch 1 is left."""
    assert worthwhile((1, 2, 4), worker([10.0, 15.0, 25.0], [10.0, 11.0, 12.0])) == [0]


def test_w6_nothing_behind_the_first_that_does_not_fit_is_looked_at() -> None:
    assert worthwhile((1, 2, 4), worker([10.0, 15.0, 10.0], [10.0, 11.0, 12.0])) == [0]
    assert worthwhile((1, 2), worker([15.0, 10.0], [10.0, 11.0])) == []


def test_just_below_the_memory_of_the_gpu_fits() -> None:
    assert worthwhile((1, 2), worker([10.0, 14.999], [10.0, 11.0])) == [0, 1]


@given(
    st.lists(
        st.tuples(st.sampled_from([4, 8, 12, 15, 16]), st.sampled_from([1, 2, 3, 5, 8, 13])), min_size=1, max_size=4
    )
)
def test_a_batch_is_kept_only_if_its_rate_beats_all_before_it(points: list[tuple[int, int]]) -> None:
    memory, latency = [float(m) for m, _ in points], [float(ms) for _, ms in points]
    batches = (1, 2, 4, 8)[: len(points)]
    expected: list[int] = []
    for index, batch in enumerate(batches):
        if memory[index] + 5 >= 20:
            break
        if all(batch * latency[other] > batches[other] * latency[index] for other in expected):
            expected.append(index)
    assert worthwhile(batches, worker(memory, latency)) == expected


def test_only_trtllm_has_a_flag_for_batches() -> None:
    listed = (1, 2, 4, 8)
    assert expressible_batches("vllm", listed) == expressible_batches("sglang", listed) == (1,)
    assert expressible_batches("trtllm", listed) == listed
    assert expressible_batches("vllm", (2, 4)) == ()


def test_a_row_of_each_batch(catalog: Catalog) -> None:
    found = rows(catalog)
    assert found.batch.tolist() == [1, 2, 4, 8]
    assert found.batched_tokens.tolist() == [1024, 2048, 4096, 8192]


def test_rate_and_latency_of_the_peers_worker(catalog: Catalog) -> None:
    """aiconfigurator 0.12.0: 13.192 ms at batch 1, 48.149 ms at batch 4; 0.9 of the rate is counted on."""
    found = rows(catalog, ttft_factor=1.8)
    assert found.ttft_ms[[0, 2]] == pytest.approx([1.8 * 13.192, 1.8 * 48.149], rel=1e-4)
    assert found.rate[[0, 2]] == pytest.approx([0.9 * 1000 / 13.192, 0.9 * 4000 / 48.149], rel=1e-4)
    assert not found.tpot_ms.any()


def test_constants_of_encode_workers(catalog: Catalog) -> None:
    plain, other = rows(catalog), rows(catalog, latency_correction=2.0, rate_degradation=0.45)
    assert other.ttft_ms[0] == pytest.approx(2 * plain.ttft_ms[0])
    assert other.rate[0] == pytest.approx(plain.rate[0] / 4)


def test_an_encode_worker_has_memory_and_no_kv_cache(catalog: Catalog) -> None:
    estimate = rows(catalog, tp=2).estimates[0]
    assert estimate.tokens_per_rank == 0
    assert estimate.weights_gib == pytest.approx(1.0997 / 2, rel=1e-4)
    assert 0 < estimate.memory_fraction <= 1


def test_a_gpu_that_does_not_hold_one_request_says_so(catalog: Catalog) -> None:
    huge = RoleInput(
        "encode",
        PerfIdentity(MODEL, "l40s", "vllm", "0.24.0"),
        (Shape(),),
        RoleKnobs((8192,), (1,), (1,), (False,)),
        3324,
        images=Images(8192, 8192, 16),
    )
    with pytest.raises(NoRow, match=r"GiB for the images of 1 request are not below the 4\d\.\d\d GiB of a GPU") as no:
        encode(catalog, huge, Shape(), WORKLOAD, RateMatching())
    assert no.value.reason == "resource_limit"
