"""The splits of an encode worker: only rules of the vision encoder count, and what the backend has flags for."""

from collections.abc import Sequence

from dgdr_api.expressible import encoder_problems
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend

from dgdr_job.catalog.images import VisionFacts
from dgdr_job.space.shapes import Refused, RoleShapes


def encode_shapes(
    vision: VisionFacts, backend: Backend, *, splits: Sequence[int], batches: Sequence[int]
) -> RoleShapes:
    """Enumerate the shapes of an encode worker, smallest first.

    Args:
        vision: geometry of the encoder, whose heads and feed-forward layers are split.
        backend: engine that must be able to express them.
        splits: GPUs of one worker that are tried, ascending.
        batches: batches of which one at least must have a form.
    """
    legal: list[Shape] = []
    refused: list[Refused] = []
    for tp in splits:
        reason = _model_limit(vision, tp) or _inexpressible(backend, tp, batches)
        if reason:
            refused.append(Refused(Shape(tp=tp), reason))
        else:
            legal.append(Shape(tp=tp))
    return RoleShapes(tuple(legal), tuple(refused))


def expressible_batches(backend: Backend, batches: Sequence[int]) -> tuple[int, ...]:
    """The batches of an encode worker that the backend has a flag for."""
    return tuple(batch for batch in batches if not encoder_problems(backend, tp=1, batch_size=batch))


def _model_limit(vision: VisionFacts, tp: int) -> str | None:
    if vision.heads % tp:
        return f"{vision.heads} heads of the encoder do not split over tp {tp}"
    if vision.intermediate_size % tp:
        return f"{vision.intermediate_size} columns of the encoder's layers do not split over tp {tp}"
    return None


def _inexpressible(backend: Backend, tp: int, batches: Sequence[int]) -> str | None:
    """Why no listed batch can be started, or None."""
    problems = [encoder_problems(backend, tp=tp, batch_size=batch) for batch in batches]
    return None if not all(problems) else "; ".join(problems[0])
