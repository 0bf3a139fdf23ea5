"""How many tokens of KV cache a shape leaves room for."""

from dataclasses import dataclass
from typing import Literal

FractionKind = Literal["of_total", "of_free"]

FRACTION_KIND: dict[str, FractionKind] = {"vllm": "of_total", "sglang": "of_total", "trtllm": "of_free"}
"""What a backend's memory fraction is a fraction of: all memory, or the memory that weights and buffers leave free."""


@dataclass(frozen=True)
class KvEstimate:
    """Memory of one GPU (one rank) of a worker, and the KV tokens it holds.

    The worker holds ``tokens_per_rank * attention_dp`` tokens. The vision encoder's weights are not in it.

    Attributes:
        tokens_per_rank: KV tokens, 0 when nothing is left.
        memory_fraction: The fraction used.
        fraction_kind: What it is a fraction of.
        max_num_batched_tokens: Tokens of a pass that activations were sized for.
        capacity_gib: Memory of the GPU.
        weights_gib: Weights.
        activations_gib: Activations of the largest pass.
        runtime_gib: Driver, library and allocator overhead.
        communication_gib: Collective buffers.
        kv_bytes_per_token: KV bytes of one token at the start of a sequence.
        reason: Why ``tokens_per_rank`` is 0, otherwise None.
    """

    tokens_per_rank: int
    memory_fraction: float
    fraction_kind: FractionKind
    max_num_batched_tokens: int
    capacity_gib: float
    weights_gib: float
    activations_gib: float
    runtime_gib: float
    communication_gib: float
    kv_bytes_per_token: int
    reason: str | None = None
