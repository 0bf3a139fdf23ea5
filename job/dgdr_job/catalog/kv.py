"""How many tokens of KV cache a shape leaves room for."""

import math
from dataclasses import dataclass, replace
from typing import Literal

FractionKind = Literal["of_total", "of_free"]

FRACTION_KIND: dict[str, FractionKind] = {"vllm": "of_total", "sglang": "of_total", "trtllm": "of_free"}
"""What a backend's memory fraction is a fraction of: all memory, or the memory that weights and buffers leave free."""


@dataclass(frozen=True)
class KvEstimate:
    """Memory of one GPU (one rank) of a worker, and the KV tokens it holds.

    The worker holds ``tokens_per_rank * attention_dp`` tokens. A vision encoder beside the language model is not in it:
    `beside_encoder` adds it.

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

    def beside_encoder(self, weights_gib: float, activations_gib: float) -> "KvEstimate":
        """The estimate of the same GPU when it holds a vision encoder too.

        What the encoder takes is taken from the KV cache: all of it where the memory fraction is of all memory, that
        fraction of it where it is of the free memory. Every token takes the same KV bytes in the models that have an
        encoder.

        Args:
            weights_gib: Weights of the encoder on this GPU.
            activations_gib: Its activations.
        """
        taken = (weights_gib + activations_gib) * (self.memory_fraction if self.fraction_kind == "of_free" else 1.0)
        tokens = max(math.floor((self._kv_gib - taken) * (1 << 30) / self.kv_bytes_per_token), 0)
        reason = self.reason
        if not tokens and reason is None:
            reason = (
                f"the vision encoder's {weights_gib:.2f} GiB of weights and {activations_gib:.2f} GiB of activations "
                f"leave no KV cache in {self.capacity_gib:.2f} GiB at memory fraction {self.memory_fraction:g}"
            )
        return replace(
            self,
            tokens_per_rank=tokens if self.tokens_per_rank else 0,
            weights_gib=self.weights_gib + weights_gib,
            activations_gib=self.activations_gib + activations_gib,
            reason=reason,
        )

    @property
    def _kv_gib(self) -> float:
        """Memory of the KV cache; negative where weights and buffers leave none."""
        others = self.weights_gib + self.activations_gib + self.runtime_gib + self.communication_gib
        if self.fraction_kind == "of_free":
            return (self.capacity_gib - others) * self.memory_fraction
        return self.capacity_gib * self.memory_fraction - others
