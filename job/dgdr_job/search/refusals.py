"""Why a shape, or a pair of shapes, has no feasible deployment: the first reason that holds, with its numbers.

In this order: no valid row; no row meets the bounds; no worker counts within the limits; none of them carries the
load. Texts are built from the values that were compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from dgdr_api.shape import Shape
from dgdr_api.terms import PointStatus, ReasonCategory

from dgdr_job.matching.arrays import Floats, Ints
from dgdr_job.matching.match import best_deployments
from dgdr_job.matching.tuples import Tuples
from dgdr_job.search.points import Points, mean_e2e_ms, within
from dgdr_job.search.question import Question
from dgdr_job.search.role_table import RoleTable
from dgdr_job.space.counts import agg_pairs, count_deployments, most_workers_of
from dgdr_job.space.limits import POOL_OF_ROLE, Limits, PoolName

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Refusal:
    """Deployments of one shape, or pair of shapes, of which none is feasible."""

    shapes: tuple[Shape, ...]
    """Shape of each role, in the order of the topology."""
    status: PointStatus
    reason: ReasonCategory
    detail: str
    """The numbers."""
    deployments: int
    """Worker counts within the limits; 0 for a remark on rows of a shape that has others."""


Verdict = tuple[PointStatus, ReasonCategory, str]


def agg_refusals(table: RoleTable, question: Question, *, valid: Mask, kept: Ints, points: Points) -> Iterator[Refusal]:
    """Shapes of an aggregated branch without a feasible deployment.

    Args:
        table: rows of the branch.
        question: what was asked.
        valid: which rows are usable at all.
        kept: usable rows that meet the bounds.
        points: feasible deployments.
    """
    served = set(table.shape[points.decode_row].tolist())
    for index, known in enumerate(table.shapes):
        if index in served:
            continue
        count = agg_pairs([known.shape], question.limits)
        mine = np.flatnonzero(valid & (table.shape == index))
        meeting = kept[table.shape[kept] == index]
        if mine.size == 0:
            verdict = _invalid(table, index)
        elif meeting.size == 0:
            verdict = _misses_bounds_together(question, table.ttft_ms[mine], table.tpot_ms[mine])
        elif count == 0:
            verdict = _no_counts(question, {"decode": known.shape.gpus})
        elif question.kv_load_ratio is not None:
            most = question.limits.gpu_budget // known.shape.gpus
            verdict = _own_load(question, most, table.held[meeting], table.slots[meeting])
        else:
            most = question.limits.gpu_budget // known.shape.gpus
            load = question.load(table.ttft_ms[meeting], table.tpot_ms[meeting], table.slots[meeting])
            verdict = _load(
                question,
                most * int(table.slots[meeting].max()),
                most * float(table.rate[meeting].max()),
                float(load.needed_rate.min()),
            )
        yield Refusal((known.shape,), *verdict, count)


def pool_refusals(
    tables: Sequence[RoleTable],
    question: Question,
    *,
    valid: Sequence[Mask],
    tuples: Tuples,
    rows: Sequence[Ints],
    points: Points,
) -> Iterator[Refusal]:
    """Shapes of several roles, one of each, without a feasible deployment.

    Args:
        tables: rows of each role.
        question: what was asked.
        valid: which rows of each are usable at all.
        tuples: tuples of usable rows that meet the bounds.
        rows: per role the row of each of them.
        points: feasible deployments.
    """
    shape_of = tuple(table.shape[row] for table, row in zip(tables, rows, strict=True))
    served = np.zeros(tuple(len(table.shapes) for table in tables), dtype=np.bool_)
    served[tuple(table.shape[points.row_of(table.kind)] for table in tables)] = True
    most_rate = _most_rate(question, tuples, shape_of, ~served)
    for index in np.argwhere(~served).tolist():
        chosen = _Chosen(tables, tuple(index), valid)
        mine = np.flatnonzero(np.logical_and.reduce([of == at for of, at in zip(shape_of, index, strict=True)]))
        verdict = _unusable(chosen, question)
        if verdict is not None:
            pass
        elif mine.size == 0:
            verdict = chosen.misses_bounds(question)
        elif chosen.deployments(question) == 0:
            verdict = _no_counts(question, chosen.gpus)
        else:
            verdict = _carries_no_load(
                chosen,
                question,
                [row[mine] for row in rows],
                most_rate=float(most_rate[tuple(index)]),
                needed_rate=float(tuples.needed_rate[mine].min()),
            )
        yield Refusal(chosen.shapes, *verdict, chosen.deployments(question))


@dataclass(frozen=True)
class _Chosen:
    """One shape of each role."""

    tables: Sequence[RoleTable]
    index: tuple[int, ...]
    """Of the shape in each table."""
    valid: Sequence[Mask]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes."""
        return tuple(table.shapes[at].shape for table, at in zip(self.tables, self.index, strict=True))

    @property
    def gpus(self) -> dict[PoolName, int]:
        """GPUs of one worker of each pool."""
        return {POOL_OF_ROLE[table.kind]: shape.gpus for table, shape in zip(self.tables, self.shapes, strict=True)}

    def usable(self, role: int) -> Ints:
        """The usable rows of a role's shape."""
        return np.flatnonzero(self.valid[role] & (self.tables[role].shape == self.index[role]))

    def deployments(self, question: Question) -> int:
        """Worker counts within the limits."""
        return count_deployments(self.gpus, question.limits)

    def misses_bounds(self, question: Question) -> Verdict:
        """No rows of these shapes keep the bounds together."""
        ttft = [table.ttft_ms[self.usable(role)] for role, table in enumerate(self.tables)]
        tpot = [table.tpot_ms[self.usable(role)] for role, table in enumerate(self.tables)]
        encode = sum(float(each.min()) for table, each in zip(self.tables, ttft, strict=True) if table.kind == "encode")
        if self.tables[0].kind == "agg":
            status, reason, text = _misses_bounds_together(question, ttft[0] + encode, tpot[0])
        else:
            least_ttft, least_tpot = (sum(float(each.min()) for each in times) for times in (ttft, tpot))
            status, reason, text = _misses_bounds(question, least_ttft, least_tpot)
        remark = f", of which encode workers take {encode:.6g} ms at least" if encode and "TPOT" not in text else ""
        return status, reason, text + remark


def _unusable(chosen: _Chosen, question: Question) -> Verdict | None:
    """A role without usable rows, or shapes that the backend cannot have together."""
    for role, table in enumerate(chosen.tables):
        if role == 1 and chosen.tables[0].kind == "prefill":
            problem = question.pair_problem(*chosen.shapes[:2])
            if problem is not None:
                return "infeasible", "backend_topology", problem
        if chosen.usable(role).size == 0:
            return _invalid(table, chosen.index[role])
    return None


def _carries_no_load(
    chosen: _Chosen, question: Question, rows: Sequence[Ints], *, most_rate: float, needed_rate: float
) -> Verdict:
    """Worker counts there are, but none carries the load; ``rows`` are those of each role that keep the bounds."""
    role = next(at for at, table in enumerate(chosen.tables) if POOL_OF_ROLE[table.kind] == "decode")
    held, slots = chosen.tables[role].held[rows[role]], chosen.tables[role].slots[rows[role]]
    most = most_workers_of("decode", chosen.gpus, question.limits)
    if question.kv_load_ratio is not None:
        return _own_load(question, most, held, slots)
    return _load(question, most * int(slots.max()), most_rate, needed_rate)


def invalid_refusals(table: RoleTable, valid: Mask) -> Iterator[Refusal]:
    """Shapes of which only some rows are unusable: a remark that stands for no deployment."""
    for index, known in enumerate(table.shapes):
        mine = table.shape == index
        broken = mine & ~valid
        if broken.any() and (mine & valid).any():
            batches = ", ".join(str(batch) for batch in sorted(set(table.batch[broken].tolist()))[:5])
            detail = (
                f"{table.kind} {known.shape.label}: {int(broken.sum())} of {int(mine.sum())} rows have a rate or "
                f"latency that is no positive finite number, the first at batch {batches}"
            )
            yield Refusal((known.shape,), "failed", "invalid_metrics", detail, 0)


def _most_rate(question: Question, tuples: Tuples, shape_of: tuple[Ints, ...], refused: Mask) -> Floats:
    """Requests per second that the shapes of each refused choice can serve at most within the limits."""
    most = np.zeros(refused.shape)
    if not tuples.needed_rate.any():
        return most
    index = np.flatnonzero(refused[shape_of])
    some = tuples.take(index)
    free = replace(some, offered_rate=np.full(index.size, np.inf), needed_rate=np.zeros(index.size))
    found = best_deployments(free, question.limits, "rate")
    at = index[found.pair]
    np.maximum.at(most, tuple(of[at] for of in shape_of), found.rate)
    return most


def _invalid(table: RoleTable, index: int) -> Verdict:
    label = table.shapes[index].shape.label
    count = int((table.shape == index).sum())
    text = f"{table.kind} {label}: none of {count} rows has a rate and latencies that are positive finite numbers"
    return "failed", "invalid_metrics", text


def _misses_bounds(question: Question, ttft_ms: float, tpot_ms: float) -> Verdict:
    """Roles of their own: the least of each can be had together."""
    least_e2e = ttft_ms + tpot_ms * max(question.workload.osl - 1, 0)
    return "infeasible", "sla_constraint", _broken(question, ttft_ms, tpot_ms, least_e2e)


def _misses_bounds_together(question: Question, ttft_ms: Floats, tpot_ms: Floats) -> Verdict:
    """One role: each row has both latencies, and the least of each may stand in different rows."""
    sla = question.sla
    least_e2e = float(mean_e2e_ms(ttft_ms, tpot_ms, question.workload.osl).min())
    text = _broken(question, float(ttft_ms.min()), float(tpot_ms.min()), least_e2e)
    if not text and sla.ttft_ms is not None and sla.itl_ms is not None:
        ttft = float(ttft_ms[within(tpot_ms, sla.itl_ms)].min())
        text = f"least TTFT with a TPOT within {sla.itl_ms:g} ms is {_above(ttft, sla.ttft_ms)}"
    return "infeasible", "sla_constraint", text


def _broken(question: Question, ttft_ms: float, tpot_ms: float, e2e_ms: float) -> str:
    sla = question.sla
    return ", ".join(
        f"least {name} {_above(least, bound)}"
        for name, least, bound in (
            ("TTFT", ttft_ms, sla.ttft_ms),
            ("TPOT", tpot_ms, sla.itl_ms),
            ("e2e", e2e_ms, sla.e2e_ms),
        )
        if bound is not None and not within(np.array([least]), bound)
    )


def _above(value_ms: float, bound_ms: float) -> str:
    """A value beside the bound that it exceeds, with as many digits as it takes to tell them apart."""
    value, bound = f"{value_ms:.6g}", f"{bound_ms:g}"
    return f"{value} ms > {bound} ms" if value != bound else f"{value_ms!r} ms > {bound_ms!r} ms"


def _no_counts(question: Question, gpus: Mapping[PoolName, int]) -> Verdict:
    """No worker counts of these GPUs per worker are within the limits."""
    limits = question.limits
    least = sum(gpus.values())
    if least > limits.gpu_budget:
        text = f"one worker of each role takes {least} GPUs, {limits.budget_name} is {limits.gpu_budget}"
    else:
        sizes = " and ".join(str(each) for each in gpus.values())
        text = f"no counts of workers of {sizes} GPUs make {within_limits(limits, tuple(gpus))}"
    return "infeasible", "gpu_budget", text


def within_limits(limits: Limits, pools: Sequence[PoolName]) -> str:
    """The limits on the GPUs of a deployment of these pools in words, with the fields that set them."""
    least = "" if limits.min_gpu_budget == 1 else f"at least {limits.min_gpu_budget} (hardware.gpu.minBudget) and "
    budget = f"{least}at most {limits.gpu_budget} GPUs ({limits.budget_name})"
    caps = [f"at most {cap} {pool} GPUs" for pool in pools if (cap := limits.caps(pool)[0]) is not None]
    caps += [f"at most {cap} {pool} workers" for pool in pools if (cap := limits.caps(pool)[1]) is not None]
    caps += [f"{cap.name} of {cap.gpus} GPUs for {' and '.join(sorted(cap.pools))}" for cap in limits.shared]
    return f"{budget} with {', '.join(caps)}" if caps and len(pools) > 1 else budget


def _load(question: Question, most_slots: int, most_rate: float, needed_rate: float) -> Verdict:
    """What of the load cannot be carried. Rates are requests per second."""
    limits, workload = question.limits, question.workload
    served = f"{limits.gpu_budget} GPUs serve at most {most_rate:.6g} within the bounds"
    if workload.concurrency is None:
        text = f"{workload.request_rate:g} requests/s are asked for, {served}"
    elif most_slots < workload.concurrency:
        text = (
            f"{workload.concurrency:,} requests are in flight, {limits.gpu_budget} GPUs hold at most {most_slots:,} "
            "within the bounds"
        )
    else:
        text = (
            f"{workload.concurrency:,} requests in flight must be served at {needed_rate:.6g} requests/s at least, "
            f"else they wait beyond the bounds; {served}"
        )
    return "infeasible", "load_constraint", text


def _own_load(question: Question, most: int, held: Ints, slots: Ints) -> Verdict:
    """Why no deployment carries the load that its own KV cache stands for.

    Args:
        question: what was asked; a KV load ratio.
        most: decode (or aggregated) workers that the limits allow.
        held: KV tokens of one worker of each row that meets the bounds.
        slots: requests that it runs.
    """
    workers = np.full(len(held), most)
    concurrency = question.own_concurrency(held, workers)
    if not concurrency.any():
        text = (
            f"the KV cache of {_workers(most)} holds {int(held.max()) * most:,} tokens in whole blocks, "
            f"a request takes {question.mean_request_tokens:,} half way through its output"
        )
        return "infeasible", "kv_capacity", text
    best = int(np.argmax(slots / np.maximum(concurrency, 1)))
    in_flight, run = int(concurrency[best]), int(slots[best]) * most
    fate = f"of which at most {run:,} run at once" if run < in_flight else "which wait beyond the bounds"
    have = f"{_workers(most)} have {in_flight:,} requests in flight"
    return "infeasible", "load_constraint", f"at a KV load ratio of {question.kv_load_ratio:g}, {have}, {fate}"


def _workers(count: int) -> str:
    return f"{count} worker{'' if count == 1 else 's'}"
