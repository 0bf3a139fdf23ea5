"""The static estimate of one branch: every shape, the best rows and worker counts of each, by exact matching.

Source: engine.md section 6.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from dgdr_job.search.refusals import Refusal, agg_refusals, invalid_refusals, pool_refusals
from dgdr_job.search.role_table import RoleTable, valid_rows
from dgdr_job.space.limits import POOL_OF_ROLE, Limits, PoolName

MOST_COUNTS = 50_000_000
"""Counts of a branch that are gone through, in about a minute. Beyond them only the best counts of each pair of rows
are compared: the best deployment is the same, but places behind it may lack a step."""
MOST_POINTS = 50_000
"""Points that a branch lists: the first by rank, and the best of each combination of shapes. They are sent, published
and looked at one by one."""


@dataclass(frozen=True)
class Evaluated:
    """What a branch holds: feasible deployments, and shapes without any."""

    points: Points
    refusals: tuple[Refusal, ...]


def evaluate_pools(tables: Sequence[RoleTable], question: Question) -> Evaluated:
    """Deployments of workers of several roles: prefill and decode, these with encode workers, or aggregated with them.

    Args:
        tables: rows of each role, in the order of the topology; those of prefill, aggregated and encode workers add up
            to the time to first token, which includes queueing.
        question: load, bounds, limits and objective.
    """
    osl, limits = question.workload.osl, question.limits
    valid = [valid_rows(table, osl) for table in tables]
    rows = _tuples_of_rows(tables, valid, question)
    ttft, tpot = latencies(tables, rows)
    serving = next(index for index, table in enumerate(tables) if POOL_OF_ROLE[table.kind] == "decode")
    held, slots = tables[serving].held[rows[serving]], tables[serving].slots[rows[serving]]
    load = question.load(ttft, tpot, slots)
    tuples = Tuples(_pools(tables, rows, load.least_workers, limits), load.offered_rate, load.needed_rate)
    matching = _Matching(
        best=lambda goal: iter((best_deployments(tuples, limits, goal, question.prices),)),
        every=lambda: all_deployments(tuples, limits, question.prices),
        points=lambda found: _points(question, found, tables, rows, held=held),
        shapes=lambda points: [table.shape[points.row_of(table.kind)] for table in tables],
        counts=break_points(tuples, limits),
    )
    if question.kv_load_ratio is not None:
        own = OwnLoadPairs(question, tuples, ttft, tpot, held=held, slots=slots)
        matching = replace(matching, best=own.best, every=own.every, counts=own.counts)
    points = _search(question, matching)
    refusals = pool_refusals(tables, question, valid=valid, tuples=tuples, rows=rows, points=points)
    remarks = itertools.chain(*map(invalid_refusals, tables, valid))
    return Evaluated(points, (*refusals, *remarks))


def _tuples_of_rows(
    tables: Sequence[RoleTable], valid: Sequence[npt.NDArray[np.bool_]], question: Question
) -> tuple[Ints, ...]:
    """Per role the row of each tuple of usable rows that keeps the bounds together and that the backend can have."""
    grids = np.meshgrid(*(np.flatnonzero(usable) for usable in valid), indexing="ij")
    rows = tuple(grid.ravel() for grid in grids)
    kept = np.flatnonzero(question.meets(*latencies(tables, rows)))
    rows = tuple(row[kept] for row in rows)
    if tables[0].kind == "prefill":
        allowed = _allowed(question, tables[0], tables[1])
        fits = allowed[tables[0].shape[rows[0]], tables[1].shape[rows[1]]]
        rows = tuple(row[fits] for row in rows)
    return rows


def latencies(tables: Sequence[RoleTable], rows: Sequence[Ints]) -> tuple[Floats, Floats]:
    """Time to first token and time per output token of each tuple of rows: the sums over its roles."""
    each = list(zip(tables, rows, strict=True))
    ttft = np.sum([table.ttft_ms[row] for table, row in each], axis=0)
    tpot = np.sum([table.tpot_ms[row] for table, row in each], axis=0)
    return ttft, tpot


def _pools(tables: Sequence[RoleTable], rows: Sequence[Ints], least_workers: Ints, limits: Limits) -> tuple[Pool, ...]:
    """The pool of each role, by tuple; ``least_workers`` are those of the role that holds the requests in flight."""
    pools = []
    for table, row in zip(tables, rows, strict=True):
        name, rate = POOL_OF_ROLE[table.kind], table.rate[row]
        if table.kind == "decode":
            # Decoding without an end to its rate never binds: one worker serves what all prefill workers can.
            rate = np.where(np.isfinite(rate), rate, tables[0].rate[rows[0]] * limits.gpu_budget)
        pools.append(Pool(name, rate, table.gpus[row], least_workers if name == "decode" else None))
    return tuple(pools)


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
        points=lambda found: _points(question, found, (table,), (kept,), held=table.held[kept]),
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
        if len(kept) > MOST_POINTS:
            _, best = np.unique(np.stack(matching.shapes(kept)), axis=1, return_index=True)
            kept = kept.take(np.union1d(np.arange(MOST_POINTS), best))
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
    rows = (points.prefill_row, points.decode_row, points.encode_row)
    workers = (points.prefill_workers, points.decode_workers, points.encode_workers)
    key = np.stack([*rows, *workers], axis=1)
    _, first = np.unique(key, axis=0, return_index=True)
    return points.take(np.sort(first))


def _front(points: Points, question: Question) -> Points:
    """The points that no other beats in every metric; of equal ones that with the fewest GPUs. Bounds memory."""
    columns = metrics(points, question.workload.osl)
    scores = [score(objective(points, columns, metric), metric) for metric in question.metrics]
    fewest_first = np.argsort(points.gpus, kind="stable")
    return points.take(fewest_first[pareto.front(np.stack(scores, axis=1)[fewest_first])])


def _points(
    question: Question, found: Matched, tables: Sequence[RoleTable], rows: Sequence[Ints], *, held: Ints
) -> Points:
    """What was matched, with the rows of each role and the wait in the time to first token.

    Args:
        question: load and prices.
        found: worker counts of tuples of rows.
        tables: rows of each role.
        rows: of each tuple the row of each role.
        held: of each tuple the KV tokens of a worker that holds requests in flight.
    """
    ttft, tpot = latencies(tables, [row[found.pair] for row in rows])
    if question.kv_load_ratio is None:
        concurrency = np.full(len(found), question.workload.concurrency or 0)
    else:
        concurrency = question.own_concurrency(held[found.pair], found.decode_workers)
    workers = {"prefill": found.prefill_workers, "decode": found.decode_workers, "encode": found.encode_workers}
    row_of = {POOL_OF_ROLE[table.kind]: row[found.pair] for table, row in zip(tables, rows, strict=True)}
    none = np.full(len(found), -1)
    gpus = {
        POOL_OF_ROLE[table.kind]: workers[POOL_OF_ROLE[table.kind]] * table.gpus[row[found.pair]]
        for table, row in zip(tables, rows, strict=True)
    }
    return Points(
        prefill_row=row_of.get("prefill", none),
        decode_row=row_of["decode"],
        prefill_workers=found.prefill_workers,
        decode_workers=found.decode_workers,
        encode_row=row_of.get("encode", none),
        encode_workers=found.encode_workers,
        gpus=found.gpus,
        cost=_cost(question.prices, found.gpus, gpus),
        rate=found.rate,
        ttft_ms=ttft + question.wait_ms(found.rate, ttft, tpot, concurrency),
        tpot_ms=tpot,
        concurrency=concurrency,
    )


def _cost(prices: Prices, gpus: Ints, of_pool: Mapping[PoolName, Ints]) -> Floats:
    """Price of an hour of all GPUs."""
    if prices.one:
        return np.asarray(gpus * prices.decode, dtype=np.float64)
    cost = np.zeros(len(gpus))
    for pool, each in of_pool.items():
        cost += each * prices.of(pool)
    return cost
