"""The number formats that the estimates are for."""

from collections.abc import Mapping
from dataclasses import dataclass

from dgdr_job.catalog.errors import Reason, Unsupported


@dataclass(frozen=True)
class Quantization:
    """Formats by the performance model's names, after what has no data was replaced.

    Attributes:
        gemm: Dense weights and their products, e.g. ``bfloat16``, ``fp8_block``, ``nvfp4_wo``.
        moe: Expert weights.
        kv: KV cache.
        attention: Attention over the prompt.
        communication: Collectives.
        inferred: (field, format that the checkpoint declares) for each field where it differs: shown and rendered.
    """

    gemm: str
    moe: str
    kv: str
    attention: str
    communication: str
    inferred: tuple[tuple[str, str], ...] = ()


def check_compute(subject: str, formats: Quantization, gpu: Mapping[str, object]) -> None:
    """Refuse FP8 products on a GPU that has no FP8 compute, before anything is estimated.

    Args:
        subject: Begins the message.
        formats: What the weights are computed in.
        gpu: The description of the GPU: a rate of each kind of product that it has.

    Raises:
        Unsupported: UnsupportedDtype.
    """
    for what, name in (("weights", formats.gemm), ("experts", formats.moe)):
        if "fp8" in name and not gpu.get("fp8_tc_flops"):
            raise Unsupported(
                Reason.UNSUPPORTED_DTYPE,
                f"{subject}: the checkpoint's {what} are {name}, and this GPU has no FP8 compute; use a bfloat16 "
                "checkpoint, or a GPU with FP8",
            )
