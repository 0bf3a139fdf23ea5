"""What a branch refused, one row each: shapes that are not legal, have no KV room or no data, or no feasible counts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from dgdr_api.shape import Shape
from dgdr_api.terms import PointStatus, ReasonCategory

from dgdr_job.search.branches import Branch
from dgdr_job.search.points import Points
from dgdr_job.search.refusals import Refusal
from dgdr_job.search.role_table import RoleTable
from dgdr_job.search.static import MOST_POINTS, Evaluated


@dataclass(frozen=True)
class RefusedRow:
    """A shape of one role, or a shape of each role, and why no deployment of it is feasible."""

    summary: str
    gpus: int
    """GPUs of one worker of each shape."""
    status: PointStatus
    reason: ReasonCategory | None
    """None for what was pruned."""
    detail: str
    """The reason with its numbers."""
    deployments: int
    """Scheduled deployments that the row stands for; 0 for a shape that never was scheduled."""


def refused_rows(branch: Branch, tables: tuple[RoleTable, ...], found: Evaluated) -> tuple[RefusedRow, ...]:
    """Everything of a branch that is no feasible point: pruned, refused, without data, and never scheduled.

    A deployment whose shapes are both without rows is counted with the first role, so that no count is doubled.
    """
    return (
        *_pruned(branch, tables, found.points),
        *_evaluated(branch, found.refusals),
        *_skipped(branch, tables),
        *_unscheduled(branch),
    )


def _pruned(branch: Branch, tables: tuple[RoleTable, ...], points: Points) -> Iterator[RefusedRow]:
    """Worker counts of shapes that have feasible points, which are no better than listed ones."""
    if len(points) == 0:
        return
    shapes = [table.shape[points.row_of(table.kind)] for table in tables]
    workers = [points.workers_of(table.kind) for table in tables]
    why = "ranks before it" if len(points) >= MOST_POINTS else "is at least as good with fewer GPUs"
    counts = np.unique(np.stack([*shapes, *workers], axis=1), axis=0)
    served, kept = np.unique(counts[:, : len(tables)], axis=0, return_counts=True)
    for index, listed in zip(served.tolist(), kept.tolist(), strict=True):
        chosen = [table.shapes[at].shape for table, at in zip(tables, index, strict=True)]
        every = branch.pairs_of(*((shape,) for shape in chosen))
        if every > listed:
            yield RefusedRow(
                summary=" + ".join(shape.label for shape in chosen),
                gpus=sum(shape.gpus for shape in chosen),
                status="pruned",
                reason=None,
                detail=f"{every - listed} of {every} worker counts: a listed one {why}",
                deployments=every - listed,
            )


def _evaluated(branch: Branch, refusals: Iterable[Refusal]) -> Iterator[RefusedRow]:
    for refusal in refusals:
        count = refusal.deployments
        whole = len(refusal.shapes) == len(branch.roles)
        yield RefusedRow(
            summary=" + ".join(shape.label for shape in refusal.shapes),
            gpus=sum(shape.gpus for shape in refusal.shapes),
            status=refusal.status,
            reason=refusal.reason,
            detail=f"{refusal.detail} ({count} worker counts)" if whole and count else refusal.detail,
            deployments=count,
        )


def _skipped(branch: Branch, tables: tuple[RoleTable, ...]) -> Iterator[RefusedRow]:
    for index, table in enumerate(tables):
        for out in table.skipped:
            partners = [
                tuple(known.shape for known in other.shapes) if before < index else other.reached
                for before, other in enumerate(tables)
            ]
            partners[index] = (out.shape,)
            count = branch.pairs_of(*partners)
            yield RefusedRow(
                summary=f"{table.kind} {out.shape.label}",
                gpus=out.shape.gpus,
                status=out.status,
                reason=out.reason,
                detail=f"{out.detail} ({count} worker counts)",
                deployments=count,
            )


def _unscheduled(branch: Branch) -> Iterator[RefusedRow]:
    for role in branch.roles:

        def row(
            shape: Shape, status: PointStatus, reason: ReasonCategory, detail: str, kind: str = role.kind
        ) -> RefusedRow:
            return RefusedRow(f"{kind} {shape.label}", shape.gpus, status, reason, detail, 0)

        for gated in role.gated.removed:
            yield row(gated.shape, "infeasible", "kv_capacity", gated.detail)
        for unknown in role.gated.unestimated:
            text = f"{unknown.error.reason}: {unknown.error.message}"
            yield row(unknown.shape, "unsupported", "no_samples", text)
        for illegal in role.shapes.refused:
            yield row(illegal.shape, "infeasible", "backend_topology", illegal.reason)
