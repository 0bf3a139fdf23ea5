"""The requests that the static search is measured with, each beside the same request to aiconfigurator."""

from dataclasses import dataclass
from pathlib import Path

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
    gpus: int
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


_CLUSTER = (
    "Disaggregated: the peer repeats one unit of workers; ours may use any worker counts within the budget, and leaves "
    "GPUs out when that is better per used GPU."
)
_PASSES = (
    "Aggregated: our list of prompt tokens per pass begins at 512 and is rendered as a token budget; the peer's "
    "shortest pass holds about one prompt."
)
_LITTLE = (
    "Aggregated: the core's TPOT of {} leaves out three passes of each prefill phase, so that a row serves fewer "
    "requests than its own latencies imply; we add the difference to the TTFT, and rows that then miss it are out."
)

WORKS = (
    Work(
        "qwen3-32b",
        "Qwen3-32B, vLLM, 16 H200",
        ("--model", "Qwen/Qwen3-32B", "--system", "h200_sxm", "--backend", "vllm", "--total-gpus", "16", *_LOAD),
        gpus=16,
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
        gpus=32,
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
        gpus=32,
        osl=300,
        ttft_ms=1000,
        tpot_ms=40,
        cold_aim=15,
        why=(_CLUSTER, _LITTLE.format("SGLang")),
    ),
    Work(
        "qwen3-vl-32b",
        "Qwen3-VL-32B with images, vLLM, H200 and B200 for decode, 16 GPUs",
        (
            *("--model", "Qwen/Qwen3-VL-32B-Instruct", "--system", "h200_sxm", "--decode-system", "b200_sxm"),
            *("--backend", "vllm", "--total-gpus", "16", "--isl", "2000", "--osl", "300", "--ttft", "2000"),
            *("--tpot", "40", "--enable-epd", "--image-height", "1024", "--image-width", "1024", "--num-images", "1"),
        ),
        gpus=16,
        osl=300,
        ttft_ms=2000,
        tpot_ms=40,
        cold_aim=8,
        warm_aim=40,
        why=(_CLUSTER, _PASSES),
    ),
    Work(
        "heterogeneous",
        "Qwen3-32B, vLLM, H100 and H200 for decode, 16 GPUs",
        (
            *("--model", "Qwen/Qwen3-32B", "--system", "h100_sxm", "--decode-system", "h200_sxm"),
            *("--backend", "vllm", "--total-gpus", "16", *_LOAD),
        ),
        gpus=16,
        osl=300,
        ttft_ms=1000,
        tpot_ms=40,
        why=(_CLUSTER, _PASSES),
    ),
)
