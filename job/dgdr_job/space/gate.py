"""The KV gate: a shape stays when the longest request fits into the KV cache of one rank.

Source: engine.md section 4. The bound that is checked here is the bound that is rendered (maximum model length).
"""

from dataclasses import dataclass

from dgdr_api.shape import Shape

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.space.knobs import RoleKnobs


@dataclass(frozen=True)
class GatedOut:
    """A shape without room, with the numbers."""

    shape: Shape
    kv_tokens: int
    """KV tokens per rank with the least demanding knobs."""
    needed_tokens: int

    @property
    def detail(self) -> str:
        """The reason as a person reads it."""
        return (
            f"{self.shape.label}: {max(self.kv_tokens, 0):,} KV tokens per rank, "
            f"more than {self.needed_tokens:,} are needed for the longest request"
        )


@dataclass(frozen=True)
class Gated:
    """Shapes that passed and shapes that did not."""

    kept: tuple[Shape, ...]
    removed: tuple[GatedOut, ...]


def kv_gate(
    catalog: Catalog, identity: PerfIdentity, shapes: tuple[Shape, ...], knobs: RoleKnobs, max_sequence_tokens: int
) -> Gated:
    """Keep the shapes whose least demanding knob values leave room for the longest request.

    Args:
        catalog: source of the KV estimate.
        identity: model, SKU, backend and data version of the role.
        shapes: legal shapes of the role.
        knobs: the role's listed limits; the least token budget and the largest memory fraction demand least.
        max_sequence_tokens: prompt plus output tokens of the longest request.
    """
    kept: list[Shape] = []
    removed: list[GatedOut] = []
    for shape in shapes:
        tokens = max(
            kv_estimate(catalog, identity, shape, knobs.max_num_batched_tokens[0], fraction).tokens_per_rank
            for fraction in knobs.memory_fraction
        )
        if tokens > max_sequence_tokens:
            kept.append(shape)
        else:
            removed.append(GatedOut(shape, tokens, max_sequence_tokens))
    return Gated(tuple(kept), tuple(removed))


def kv_estimate(
    catalog: Catalog, identity: PerfIdentity, shape: Shape, max_num_batched_tokens: int, fraction: float | None
) -> KvEstimate:
    """KV tokens per rank of a shape at one token budget and memory fraction."""
    return catalog.kv(identity, shape, max_num_batched_tokens, fraction)
