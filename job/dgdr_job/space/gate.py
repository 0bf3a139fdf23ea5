"""The KV gate: a shape stays when the longest request fits into the KV cache of one rank.

Source: engine.md section 4. The bound that is checked here is the bound that is rendered (maximum model length).
"""

from collections.abc import Callable
from dataclasses import dataclass

from dgdr_api.shape import Shape

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
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
class Unestimated:
    """A shape whose memory cannot be estimated, with the refusal."""

    shape: Shape
    error: Unsupported


@dataclass(frozen=True)
class Gated:
    """Shapes that passed and shapes that did not."""

    kept: tuple[Shape, ...]
    removed: tuple[GatedOut, ...]
    unestimated: tuple[Unestimated, ...] = ()


Beside = Callable[[Shape, KvEstimate], KvEstimate]
"""What is left of a shape's KV cache by what else the worker holds."""


def kv_gate(
    catalog: Catalog,
    identity: PerfIdentity,
    shapes: tuple[Shape, ...],
    knobs: RoleKnobs,
    max_sequence_tokens: int,
    *,
    beside: Beside = lambda _, estimate: estimate,
) -> Gated:
    """Keep the shapes whose least demanding knob values leave room for the longest request.

    Args:
        catalog: source of the KV estimate.
        identity: model, SKU, backend and data version of the role.
        shapes: legal shapes of the role.
        knobs: the role's listed limits; the least token budget and the largest memory fraction demand least.
        max_sequence_tokens: prompt plus output tokens of the longest request.
        beside: takes from an estimate what the worker holds besides the language model.

    Raises:
        Unsupported: the memory of no shape can be estimated; the reason is that of the first.
    """
    kept: list[Shape] = []
    removed: list[GatedOut] = []
    unestimated: list[Unestimated] = []
    for shape in shapes:
        try:
            tokens = max(
                beside(shape, catalog.kv(identity, shape, knobs.least_token_budget, fraction)).tokens_per_rank
                for fraction in knobs.memory_fraction
            )
        except Unsupported as error:
            unestimated.append(Unestimated(shape, error))
            continue
        if has_room(tokens, max_sequence_tokens):
            kept.append(shape)
        else:
            removed.append(GatedOut(shape, tokens, max_sequence_tokens))
    if unestimated and not kept and not removed:
        raise unestimated[0].error
    return Gated(tuple(kept), tuple(removed), tuple(unestimated))


def has_room(kv_tokens: int, max_sequence_tokens: int) -> bool:
    """Whether one rank holds the longest request: its KV tokens must exceed it."""
    return kv_tokens > max_sequence_tokens
