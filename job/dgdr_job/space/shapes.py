"""The legal parallel shapes of one role, and why the others are not.

Source of the patterns: engine.md section 3 (the pure patterns that measured data covers).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dgdr_api.expressible import WORKER_GPUS, RoleForm, shape_problems
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend, RoleKind

from dgdr_job.catalog.model import ModelFacts

FP8_BLOCK = 128
"""Columns of one scale of an fp8-block weight: a tensor-parallel slice of the experts is a multiple of it."""


@dataclass(frozen=True)
class Refused:
    """A shape that is not legal here, with the reason."""

    shape: Shape
    reason: str


@dataclass(frozen=True)
class RoleShapes:
    """The shapes of one role: those that are legal, smallest first, and those that are not."""

    legal: tuple[Shape, ...]
    refused: tuple[Refused, ...]


def role_shapes(
    model: ModelFacts,
    backend: Backend,
    kind: RoleKind,
    *,
    engine_version: str,
    gpus_per_node: int,
    ladder: tuple[int, ...] = WORKER_GPUS,
    explicit: tuple[Shape, ...] | None = None,
) -> RoleShapes:
    """Enumerate the shapes of a role.

    Args:
        model: what the checkpoint declares.
        backend: engine that must be able to express the shape.
        kind: role of the worker.
        engine_version: version of that engine.
        gpus_per_node: GPUs of one node of the role's SKU.
        ladder: GPUs per worker that are tried.
        explicit: shapes in place of the patterns: the only way to mixed tp and attention_dp, to pp and to cp.
    """
    legal: list[Shape] = []
    refused: list[Refused] = []
    shapes = _patterns(model, ladder) if explicit is None else sorted(set(explicit), key=_smallest_first)
    for shape in shapes:
        form = RoleForm(
            backend=backend,
            engine_version=engine_version,
            kind=kind,
            shape=shape,
            is_moe=model.is_moe,
            gpus_per_node=gpus_per_node,
        )
        reason = shape_problem(model, form)
        if reason:
            refused.append(Refused(shape, reason))
        else:
            legal.append(shape)
    return RoleShapes(tuple(legal), tuple(refused))


def shape_problem(model: ModelFacts, form: RoleForm) -> str | None:
    """The first rule of the model, or else of the backend, that a role of this form breaks; None: it is legal."""
    return _model_limit(model, form.shape) or next(iter(shape_problems(form)), None)


def _smallest_first(shape: Shape) -> tuple[int, ...]:
    return (shape.gpus, *shape.key)


def _patterns(model: ModelFacts, ladder: tuple[int, ...]) -> Iterator[Shape]:
    """Dense: tensor parallel. MoE, pure: TEP, DEP, TP, DTP, and the identity on one GPU."""
    for gpus in sorted(set(ladder)):
        if not model.is_moe:
            yield Shape(tp=gpus)
        elif gpus == 1:
            yield Shape()
        else:
            yield Shape(tp=gpus, moe_ep=gpus)
            yield Shape(attention_dp=gpus, moe_ep=gpus)
            yield Shape(tp=gpus, moe_tp=gpus)
            yield Shape(attention_dp=gpus, moe_tp=gpus)


def _model_limit(model: ModelFacts, shape: Shape) -> str | None:
    """Why the model cannot be split so, or None."""
    if model.attention_heads % shape.tp:
        return f"{model.attention_heads} attention heads do not split over tp {shape.tp}"
    if model.layers % shape.pp:
        return f"{model.layers} layers do not split over pp {shape.pp}"
    if not model.is_moe:
        return None
    if shape.moe_ep > model.experts:
        return f"{model.experts} experts are fewer than moeEp {shape.moe_ep}"
    if model.is_fp8_block and (model.moe_intermediate_size / shape.moe_tp) % FP8_BLOCK:
        return (
            f"an expert of {model.moe_intermediate_size} columns over moeTp {shape.moe_tp} "
            f"is no multiple of the fp8 block of {FP8_BLOCK}"
        )
    return None
