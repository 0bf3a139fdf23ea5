"""Engine limits that the search tries, per role, and which of them a role row becomes as a deployment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RoleKnobs:
    """The listed values of one role's engine limits, each list ascending."""

    max_num_batched_tokens: tuple[int, ...]
    """Tokens of one pass, per attention data-parallel rank."""
    max_num_seqs: tuple[int, ...]
    """Sequences that run at once, per attention data-parallel rank."""
    block_size: tuple[int, ...]
    """Tokens of one KV block."""
    enable_prefix_caching: tuple[bool, ...]
    memory_fraction: tuple[float | None, ...] = (None,)
    """Share of GPU memory; None is the default of the backend for the data version."""
    ctx_tokens: tuple[int, ...] = ()
    """Prompt tokens of an aggregated pass that the static estimate tries besides the listed budgets; no part of the
    pool."""

    @property
    def least_token_budget(self) -> int:
        """The least budget of a pass that is tried: it leaves most memory to the KV cache."""
        return min((*self.max_num_batched_tokens, *self.ctx_tokens))

    @property
    def combinations(self) -> int:
        """How many settings these lists make."""
        return (
            len(self.max_num_batched_tokens)
            * len(self.max_num_seqs)
            * len(self.block_size)
            * len(self.enable_prefix_caching)
            * len(self.memory_fraction)
        )

    def batched_tokens_for(self, tokens: int) -> int | None:
        """The least listed token budget that covers a pass of ``tokens``; None where none does."""
        return next((value for value in self.max_num_batched_tokens if value >= tokens), None)
