"""The requests that the static search is measured with, each beside the same request to aiconfigurator."""

from dataclasses import dataclass
from pathlib import Path

from dgdr_api.terms import Backend
from dgdr_job.catalog.identity import PerfIdentity

_Identities = tuple[PerfIdentity, PerfIdentity]
REQUESTS = Path(__file__).parent / "requests"
_LOAD = ("--isl", "3000", "--osl", "300", "--ttft", "1000", "--tpot", "40")


@dataclass(frozen=True)
class Work:
    """One request, and what it is to reach."""

    name: str
    """Name of its file in requests/."""
    title: str
    peer: tuple[str, ...]
    """The request in the peer's words."""
    identities: _Identities
    """What prefill (or aggregated) and decode workers are timed with."""
    gpus: int
    isl: int
    osl: int
    ttft_ms: float
    tpot_ms: float
    why: tuple[str, ...]
    """Why the optima differ: a sentence for each difference."""
    cold_aim: float | None = None
    """How many times the peer's time a search with an empty cache is to be faster."""
    warm_aim: float | None = None
    """The same with a full cache."""

    @property
    def request(self) -> Path:
        """The request as a file."""
        return REQUESTS / f"{self.name}.yaml"


def _timed(model: str, backend: Backend, version: str, sku: str, decode_sku: str | None = None) -> _Identities:
    return PerfIdentity(model, sku, backend, version), PerfIdentity(model, decode_sku or sku, backend, version)


_CLUSTER = (
    "Disaggregated: the peer repeats one unit of workers; ours may use any worker counts within the budget, and leaves "
    "GPUs out when that is better per used GPU."
)
_PASSES = (
    "Aggregated: the peer's passes hold whole prompts; ours begin at 512 prompt tokens (chunked prefill), which keeps "
    "the time between tokens short beside more requests, and are rendered as the token budget of a pass."
)
_INLINE = (
    "The peer searches encode workers only. Ours searches the encoder inside the prefill or aggregated workers besides "
    "(`encoder: Both`): with 13 ms an image an encode worker is busy for half of the time here, and its GPU serves "
    "more as another worker."
)
_LITTLE = (
    "Aggregated: the core's TPOT of {} leaves out three passes of each prefill phase, so that a row serves fewer "
    "requests than its own latencies imply; we add the difference to the TTFT, and rows that then miss it are out."
)

_DEEPEP = (
    "The peer times workers whose experts are spread over 8 GPUs and more by DeepEP's all-to-all, for which the tables "
    "have rows; its manifests do not ask for it (no `--moe-a2a-backend`), and give its decode worker 128 GPUs. With "
    "the kernels that the manifests of both sides start, its best misses both bounds."
)
_MIXED = (
    "The peer searches tp and attention dp mixed in one worker, as tp2-dp8-ep16; ours does where `parallel_configs` "
    "lists it."
)

WORKS = (
    Work(
        "qwen3-32b",
        "Qwen3-32B, vLLM, 16 H200",
        ("--model", "Qwen/Qwen3-32B", "--system", "h200_sxm", "--backend", "vllm", "--total-gpus", "16", *_LOAD),
        identities=_timed("Qwen/Qwen3-32B", "vllm", "0.24.0", "h200_sxm"),
        gpus=16,
        isl=3000,
        osl=300,
        ttft_ms=1000,
        tpot_ms=40,
        cold_aim=3,
        warm_aim=10,
        why=(_CLUSTER, _PASSES),
    ),
    Work(
        "qwen3-235b",
        "Qwen3-235B-A22B-FP8, TensorRT-LLM, 32 H200",
        (
            *("--model", "Qwen/Qwen3-235B-A22B-FP8", "--system", "h200_sxm", "--backend", "trtllm"),
            *("--total-gpus", "32", *_LOAD),
        ),
        identities=_timed("Qwen/Qwen3-235B-A22B-FP8", "trtllm", "1.3.0rc20", "h200_sxm"),
        gpus=32,
        isl=3000,
        osl=300,
        ttft_ms=1000,
        tpot_ms=40,
        cold_aim=8,
        warm_aim=40,
        why=(_CLUSTER, _LITTLE.format("TensorRT-LLM")),
    ),
    Work(
        "deepseek-r1",
        "DeepSeek-R1, SGLang, 32 H200",
        (
            *("--model", "deepseek-ai/DeepSeek-R1", "--system", "h200_sxm", "--backend", "sglang"),
            *("--total-gpus", "32", *_LOAD),
        ),
        identities=_timed("deepseek-ai/DeepSeek-R1", "sglang", "0.5.14", "h200_sxm"),
        gpus=32,
        isl=3000,
        osl=300,
        ttft_ms=1000,
        tpot_ms=40,
        cold_aim=15,
        why=(
            _DEEPEP,
            _MIXED,
            _CLUSTER,
            _LITTLE.format("SGLang"),
        ),
    ),
    Work(
        "qwen3-vl-32b",
        "Qwen3-VL-32B with images, vLLM, H200 and B200 for decode, 16 GPUs",
        (
            *("--model", "Qwen/Qwen3-VL-32B-Instruct", "--system", "h200_sxm", "--decode-system", "b200_sxm"),
            *("--backend", "vllm", "--total-gpus", "16", "--isl", "2000", "--osl", "300", "--ttft", "2000"),
            *("--tpot", "40", "--enable-epd", "--image-height", "1024", "--image-width", "1024", "--num-images", "1"),
        ),
        identities=_timed("Qwen/Qwen3-VL-32B-Instruct", "vllm", "0.24.0", "h200_sxm", "b200_sxm"),
        gpus=16,
        isl=2000,
        osl=300,
        ttft_ms=2000,
        tpot_ms=40,
        cold_aim=8,
        warm_aim=40,
        why=(_INLINE, _CLUSTER, _PASSES),
    ),
    Work(
        "heterogeneous",
        "Qwen3-32B, vLLM, H100 and H200 for decode, 16 GPUs",
        (
            *("--model", "Qwen/Qwen3-32B", "--system", "h100_sxm", "--decode-system", "h200_sxm"),
            *("--backend", "vllm", "--total-gpus", "16", *_LOAD),
        ),
        identities=_timed("Qwen/Qwen3-32B", "vllm", "0.24.0", "h100_sxm", "h200_sxm"),
        gpus=16,
        isl=3000,
        osl=300,
        ttft_ms=1000,
        tpot_ms=40,
        why=(_CLUSTER, _PASSES),
    ),
)
