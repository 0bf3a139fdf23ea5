"""Why a shape, or a pair of shapes, has no feasible deployment: the first reason that holds, with its numbers.

In this order: no valid row; no row meets the bounds; no worker counts within the limits; none of them carries the
load. Texts are built from the values that were compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from dgdr_api.shape import Shape
from dgdr_api.terms import PointStatus, ReasonCategory

from dgdr_job.matching.arrays import Floats, Ints
from dgdr_job.matching.match import Pairs, best_deployments
from dgdr_job.search.points import Points, mean_e2e_ms, within
from dgdr_job.search.question import Question
from dgdr_job.search.role_table import RoleTable
from dgdr_job.space.counts import agg_pairs, disagg_pairs, most_decode_workers
from dgdr_job.space.limits import Limits

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
            verdict = _no_counts(question, known.shape.gpus)
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


def disagg_refusals(
    prefill: RoleTable,
    decode: RoleTable,
    question: Question,
    *,
    valid: tuple[Mask, Mask],
    pairs: Pairs,
    rows: tuple[Ints, Ints],
    points: Points,
) -> Iterator[Refusal]:
    """Pairs of shapes of a disaggregated branch without a feasible deployment.

    Args:
        prefill: rows of prefill workers.
        decode: rows of decode workers.
        question: what was asked.
        valid: which rows of each are usable at all.
        pairs: pairs of usable rows that meet the bounds.
        rows: the prefill and the decode row of each of them.
        points: feasible deployments.
    """
    of_pair = prefill.shape[rows[0]], decode.shape[rows[1]]
    size = len(prefill.shapes), len(decode.shapes)
    served, meeting = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    served[prefill.shape[points.prefill_row], decode.shape[points.decode_row]] = True
    meeting[of_pair] = True
    most_rate = _most_rate(question, pairs, of_pair, ~served)
    for i, j in np.argwhere(~served).tolist():
        a, b = prefill.shapes[i].shape, decode.shapes[j].shape
        count = disagg_pairs([a], [b], question.limits)
        ttft = prefill.ttft_ms[valid[0] & (prefill.shape == i)]
        tpot = decode.tpot_ms[valid[1] & (decode.shape == j)]
        if ttft.size == 0:
            verdict = _invalid(prefill, i)
        elif (problem := question.pair_problem(a, b)) is not None:
            verdict = "infeasible", "backend_topology", problem
        elif tpot.size == 0:
            verdict = _invalid(decode, j)
        elif not meeting[i, j]:
            verdict = _misses_bounds(question, float(ttft.min()), float(tpot.min()))
        elif count == 0:
            verdict = _no_counts(question, a.gpus, b.gpus)
        else:
            mine = (of_pair[0] == i) & (of_pair[1] == j)
            most = most_decode_workers(a, b, question.limits)
            if question.kv_load_ratio is not None:
                held, slots = decode.held[rows[1][mine]], decode.slots[rows[1][mine]]
                yield Refusal((a, b), *_own_load(question, most, held, slots), count)
                continue
            needed = float(pairs.needed_rate[mine].min())
            verdict = _load(question, most * int(decode.slots[rows[1][mine]].max()), float(most_rate[i, j]), needed)
        yield Refusal((a, b), *verdict, count)


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


def _most_rate(question: Question, pairs: Pairs, of_pair: tuple[Ints, Ints], refused: Mask) -> Floats:
    """Requests per second that each refused pair of shapes can serve at most within the limits."""
    most = np.zeros(refused.shape)
    if not pairs.needed_rate.any():
        return most
    index = np.flatnonzero(refused[of_pair])
    some = pairs.take(index)
    free = replace(some, offered_rate=np.full(index.size, np.inf), needed_rate=np.zeros(index.size))
    found = best_deployments(free, question.limits, "rate")
    at = index[found.pair]
    np.maximum.at(most, (of_pair[0][at], of_pair[1][at]), found.rate)
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


def _no_counts(question: Question, *gpus: int) -> Verdict:
    limits = question.limits
    least = sum(gpus)
    if least > limits.gpu_budget:
        text = f"one worker of each role takes {least} GPUs, {limits.budget_name} is {limits.gpu_budget}"
    else:
        sizes = " and ".join(str(each) for each in gpus)
        text = f"no counts of workers of {sizes} GPUs make {within_limits(limits, pools=len(gpus) > 1)}"
    return "infeasible", "gpu_budget", text


def within_limits(limits: Limits, *, pools: bool) -> str:
    """The limits on the GPUs of a deployment in words, with the fields that set them; ``pools``: caps of roles too."""
    least = "" if limits.min_gpu_budget == 1 else f"at least {limits.min_gpu_budget} (hardware.gpu.minBudget) and "
    caps = {
        "prefill GPUs": limits.max_prefill_gpus,
        "decode GPUs": limits.max_decode_gpus,
        "prefill workers": limits.max_prefill_workers,
        "decode workers": limits.max_decode_workers,
    }
    of_pools = [f"at most {cap} {name}" for name, cap in caps.items() if cap is not None and pools]
    budget = f"{least}at most {limits.gpu_budget} GPUs ({limits.budget_name})"
    return f"{budget} with {', '.join(of_pools)}" if of_pools else budget


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
