"""The static estimate of one branch: every shape, the best rows and worker counts of each, by exact matching.

Source: engine.md section 6.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dgdr_job.matching.arrays import Floats, Goal, Ints, Prices
from dgdr_job.matching.match import all_deployments, best_deployments, break_points
from dgdr_job.matching.matched import Matched, concatenate
from dgdr_job.matching.replicas import Rows, all_replicas, best_replicas
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.search import pareto
from dgdr_job.search.frugal import frugal
from dgdr_job.search.own_load import OwnLoadPairs, own_load_replicas
from dgdr_job.search.points import Points, metrics, objective, score
from dgdr_job.search.question import Question
from dgdr_job.search.refusals import Refusal, agg_refusals, disagg_refusals, invalid_refusals
from dgdr_job.search.role_table import RoleTable, valid_rows

MOST_COUNTS = 50_000_000
"""Counts of a branch that are gone through, in about a minute. Beyond them only the best counts of each pair of rows
are compared: the best deployment is the same, but places behind it may lack a step."""


@dataclass(frozen=True)
class Evaluated:
    """What a branch holds: feasible deployments, and shapes without any."""

    points: Points
    refusals: tuple[Refusal, ...]


def evaluate_disagg(prefill: RoleTable, decode: RoleTable, question: Question) -> Evaluated:
    """Deployments of prefill and decode workers.

    Args:
        prefill: rows whose ttft_ms includes queueing.
        decode: rows of decode workers.
        question: load, bounds, limits and objective.
    """
    osl, limits = question.workload.osl, question.limits
    valid_p, valid_d = valid_rows(prefill, osl), valid_rows(decode, osl)
    p, d = (grid.ravel() for grid in np.meshgrid(np.flatnonzero(valid_p), np.flatnonzero(valid_d), indexing="ij"))
    kept = np.flatnonzero(question.meets(prefill.ttft_ms[p], decode.tpot_ms[d]))
    kept = kept[_allowed(question, prefill, decode)[prefill.shape[p[kept]], decode.shape[d[kept]]]]
    p, d = p[kept], d[kept]
    ttft, tpot = prefill.ttft_ms[p], decode.tpot_ms[d]
    load = question.load(ttft, tpot, decode.slots[d])
    rate_p, rate_d = prefill.rate[p], decode.rate[d]
    # Decoding without an end to its rate never binds: one worker serves what all prefill workers can.
    rate_d = np.where(np.isfinite(rate_d), rate_d, rate_p * limits.gpu_budget)
    pairs = Tuples(
        (Pool("prefill", rate_p, prefill.gpus[p]), Pool("decode", rate_d, decode.gpus[d], load.least_workers)),
        offered_rate=load.offered_rate,
        needed_rate=load.needed_rate,
    )
    matching = _Matching(
        best=lambda goal: iter((best_deployments(pairs, limits, goal, question.prices),)),
        every=lambda: all_deployments(pairs, limits, question.prices),
        points=lambda found: _points(
            question, found, (p, d), ttft, tpot, prefill_gpus=prefill.gpus[p], held=decode.held[d]
        ),
        shapes=lambda found: [prefill.shape[found.prefill_row], decode.shape[found.decode_row]],
        counts=break_points(pairs, limits),
    )
    if question.kv_load_ratio is not None:
        own = OwnLoadPairs(question, pairs, ttft, tpot, held=decode.held[d], slots=decode.slots[d])
        matching = replace(matching, best=own.best, every=own.every, counts=own.counts)
    points = _search(question, matching)
    refusals = disagg_refusals(
        prefill, decode, question, valid=(valid_p, valid_d), pairs=pairs, rows=(p, d), points=points
    )
    return Evaluated(points, (*refusals, *invalid_refusals(prefill, valid_p), *invalid_refusals(decode, valid_d)))


def _allowed(question: Question, prefill: RoleTable, decode: RoleTable) -> npt.NDArray[np.bool_]:
    """Whether the backend can put each prefill shape beside each decode shape: [prefill shapes, decode shapes]."""
    allowed = np.ones((len(prefill.shapes), len(decode.shapes)), dtype=np.bool_)
    for i, of_prefill in enumerate(prefill.shapes):
        for j, of_decode in enumerate(decode.shapes):
            allowed[i, j] = question.pair_problem(of_prefill.shape, of_decode.shape) is None
    return allowed


def evaluate_agg(table: RoleTable, question: Question) -> Evaluated:
    """Deployments of workers that do both.

    Args:
        table: rows of aggregated workers.
        question: load, bounds, limits and objective.
    """
    valid = valid_rows(table, question.workload.osl)
    kept = np.flatnonzero(valid)
    kept = kept[question.meets(table.ttft_ms[kept], table.tpot_ms[kept])]
    ttft, tpot = table.ttft_ms[kept], table.tpot_ms[kept]
    load = question.load(ttft, tpot, table.slots[kept])
    rows = Rows(table.rate[kept], table.gpus[kept], load.least_workers, load.offered_rate, load.needed_rate)
    matching = _Matching(
        best=lambda goal: iter((best_replicas(rows, question.limits, goal),)),
        every=lambda: all_replicas(rows, question.limits),
        points=lambda found: _points(
            question,
            found,
            (np.full(len(kept), -1), kept),
            ttft,
            tpot,
            prefill_gpus=np.zeros_like(kept),
            held=table.held[kept],
        ),
        shapes=lambda found: [table.shape[found.decode_row]],
        counts=len(rows.rate) * question.limits.gpu_budget,
    )
    if question.kv_load_ratio is not None:

        def every() -> Iterator[Matched]:
            return own_load_replicas(
                question,
                rate=rows.rate,
                gpus=rows.gpus,
                ttft_ms=ttft,
                tpot_ms=tpot,
                held=table.held[kept],
                slots=table.slots[kept],
            )

        matching = replace(matching, best=lambda _: every(), every=every)
    points = _search(question, matching)
    refusals = agg_refusals(table, question, valid=valid, kept=kept, points=points)
    return Evaluated(points, (*refusals, *invalid_refusals(table, valid)))


@dataclass(frozen=True)
class _Matching:
    """One branch's question to the matching, whatever its topology."""

    best: Callable[[Goal], Iterator[Matched]]
    """The best counts of each row, or pair of rows, in chunks."""
    every: Callable[[], Iterator[Matched]]
    """All counts that are worth a look, in chunks."""
    points: Callable[[Matched], Points]
    shapes: Callable[[Points], list[Ints]]
    """Index of each point's shape, per role."""
    counts: int
    """How many counts ``every`` goes through."""


def _search(question: Question, matching: _Matching) -> Points:
    """By one metric: the deployments that are worth their GPUs. For a front: its points, and the best of each pair."""
    if question.pareto:
        return _front_points(question, matching)
    chunks = matching.every()
    if question.goal == "fewest_gpus" or matching.counts > MOST_COUNTS:
        chunks = matching.best(question.goal or "rate_per_gpu")
    kept = matching.points(concatenate([]))
    for found in chunks:
        kept = kept.followed_by(matching.points(found))
        kept = kept.take(frugal(kept, matching.shapes(kept), question))
    return kept


def _front_points(question: Question, matching: _Matching) -> Points:
    """The best counts of each pair of rows; where there is no one best, the most per GPU and the whole front.

    Under a KV load ratio every number of decode workers has a load of its own: then the front alone.
    """
    goal, own_load = question.goal, question.kv_load_ratio is not None
    if goal is not None and not own_load:
        return matching.points(concatenate(list(matching.best(goal))))
    best = [] if own_load else list(matching.best("rate_per_gpu"))
    front = points = matching.points(concatenate(best))
    for found in matching.every():
        front = _front(front.followed_by(matching.points(found)), question)
    points = points.followed_by(front)
    key = np.stack([points.prefill_row, points.decode_row, points.prefill_workers, points.decode_workers], axis=1)
    _, first = np.unique(key, axis=0, return_index=True)
    return points.take(np.sort(first))


def _front(points: Points, question: Question) -> Points:
    """The points that no other beats in every metric; of equal ones that with the fewest GPUs. Bounds memory."""
    columns = metrics(points, question.workload.osl)
    scores = [score(objective(points, columns, metric), metric) for metric in question.metrics]
    fewest_first = np.argsort(points.gpus, kind="stable")
    return points.take(fewest_first[pareto.front(np.stack(scores, axis=1)[fewest_first])])


def _points(
    question: Question,
    found: Matched,
    rows: tuple[Ints, Ints],
    ttft_ms: Floats,
    tpot_ms: Floats,
    *,
    prefill_gpus: Ints,
    held: Ints,
) -> Points:
    """What was matched, with the rows of each role and the wait in the time to first token."""
    ttft, tpot = ttft_ms[found.pair], tpot_ms[found.pair]
    if question.kv_load_ratio is None:
        concurrency = np.full(len(found), question.workload.concurrency or 0)
    else:
        concurrency = question.own_concurrency(held[found.pair], found.decode_workers)
    of_prefill = found.prefill_workers * prefill_gpus[found.pair]
    return Points(
        prefill_row=rows[0][found.pair],
        decode_row=rows[1][found.pair],
        prefill_workers=found.prefill_workers,
        decode_workers=found.decode_workers,
        encode_row=np.full(len(found), -1),
        encode_workers=np.zeros(len(found), dtype=np.int64),
        gpus=found.gpus,
        cost=_cost(question.prices, found.gpus, of_prefill),
        rate=found.rate,
        ttft_ms=ttft + question.wait_ms(found.rate, ttft, tpot, concurrency),
        tpot_ms=tpot,
        concurrency=concurrency,
    )


def _cost(prices: Prices, gpus: Ints, of_prefill: Ints) -> Floats:
    """Price of an hour of all GPUs, of which so many are those of prefill workers."""
    if prices.one:
        return np.asarray(gpus * prices.decode, dtype=np.float64)
    return np.asarray(of_prefill * prices.prefill + (gpus - of_prefill) * prices.decode, dtype=np.float64)
