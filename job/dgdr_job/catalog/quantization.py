"""The number formats that the estimates are for."""

from dataclasses import dataclass


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
