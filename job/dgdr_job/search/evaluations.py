"""What the events of a search say about its points: the rows of a branch, the counters, and the closing message."""

from collections.abc import Iterator, Sequence

import numpy as np
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.events import Counters, Evaluations, TupleCoverage
from dgdr_api.terms import Metric

from dgdr_job.matching.arrays import Floats
from dgdr_job.search.candidates import BranchResult
from dgdr_job.search.refused import RefusedRow
from dgdr_job.search.role_table import valid_rows

BATCH_ROWS = 10_000
"""Rows of one event: a few MB of JSON."""
MESSAGE_CHARACTERS = 1024


def evaluation_batches(result: BranchResult) -> Iterator[Evaluations]:
    """The rows of a branch: its feasible points, then what it refused."""
    for start in range(0, len(result.points), BATCH_ROWS):
        yield _feasible(result, range(start, min(start + BATCH_ROWS, len(result.points))))
    for start in range(0, len(result.refused), BATCH_ROWS):
        yield _refused(result, start, result.refused[start : start + BATCH_ROWS])


def counters(results: Sequence[BranchResult], pool: int) -> Counters:
    """Deployments by state; what exact matching need not look at one by one counts as pruned.

    A deployment is a shape and worker count of each role. scheduled = feasible + infeasible + unsupported + failed +
    pruned + remaining.
    """
    rows = [row for result in results for row in result.refused]
    refused = {
        status: sum(row.deployments for row in rows if row.status == status)
        for status in ("infeasible", "unsupported", "failed")
    }
    feasible = sum(deployments(result) for result in results)
    done = sum(result.branch.pairs_of(*(table.reached for table in result.tables)) for result in results)
    return Counters(
        scheduled=pool,
        feasible=feasible,
        infeasible=refused["infeasible"],
        unsupported=refused["unsupported"],
        failed=refused["failed"],
        pruned=done - feasible - sum(refused.values()),
        remaining=pool - done,
    )


def deployments(result: BranchResult) -> int:
    """How many different shapes and worker counts the points of a branch have."""
    if len(result.points) == 0:
        return 0
    workers = [result.points.workers_of(table.kind) for table in result.tables]
    columns = [*result.shape_ids, *workers]
    return len(np.unique(np.stack(columns, axis=1), axis=0))


def success(results: Sequence[BranchResult], best: EvaluatedCandidate, metrics: Sequence[Metric]) -> str:
    """The closing message of a search that found something."""
    count = sum(deployments(result) for result in results)
    values = ", ".join(f"{name} {best.evaluation.objectives[name]:.2f}" for name in metrics)
    return f"{count} feasible deployment{'' if count == 1 else 's'}; best {values}"


def why_nothing(results: Sequence[BranchResult], osl: int) -> str:
    """The closing message of a search that found nothing.

    Where bounds were missed the least latencies come first; then each reason with one example, the commonest first.
    """
    rows = [row for result in results for row in result.refused if row.deployments]
    counts: dict[str, int] = {}
    examples: dict[str, str] = {}
    for row in rows:
        name = row.reason or row.status
        counts[name] = counts.get(name, 0) + row.deployments
        examples.setdefault(name, f"{row.summary}: {row.detail}")
    parts = [_least_latencies(results, osl)] if "sla_constraint" in counts else []
    parts += [
        f"{reason}: {count} deployments, e.g. {examples[reason]}"
        for reason, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    if not rows:
        unscheduled = [row for result in results for row in result.refused]
        parts += [f"{row.summary} {row.reason}: {row.detail}" for row in unscheduled[:2]]
    return ("nothing is feasible: " + ("; ".join(parts) or "nothing was evaluated"))[:MESSAGE_CHARACTERS]


def unsupported(coverage: Sequence[TupleCoverage]) -> str:
    """The closing message of a search of which no tuple can be evaluated; equal reasons are said once."""
    tuples: dict[str, list[str]] = {}
    for each in coverage:
        if not each.supported:
            tuples.setdefault(f"{each.reason}: {each.message}", []).append(each.name)
    return "; ".join(f"{', '.join(names)} {text}" for text, names in tuples.items())[:MESSAGE_CHARACTERS]


def _least_latencies(results: Sequence[BranchResult], osl: int) -> str:
    """The least TTFT and TPOT of each branch: each role's least, of which only its own are not 0."""
    parts = []
    for result in results:
        valid = [valid_rows(table, osl) for table in result.tables]
        if all(rows.any() for rows in valid):
            ttft = sum(_least(table.ttft_ms, rows) for table, rows in zip(result.tables, valid, strict=True))
            tpot = sum(_least(table.tpot_ms, rows) for table, rows in zip(result.tables, valid, strict=True))
            parts.append(f"{result.branch.name} TTFT {ttft:.6g} ms, TPOT {tpot:.6g} ms")
    return f"least latencies: {'; '.join(parts)}"


def _feasible(result: BranchResult, points: range) -> Evaluations:
    count, chosen = len(points), slice(points.start, points.stop)
    return Evaluations(
        branch=result.branch.name,
        id=tuple(result.point_id(point) for point in points),
        status=("feasible",) * count,
        reason=(None,) * count,
        detail=("",) * count,
        used_gpus=tuple(result.points.gpus[chosen].tolist()),
        summary=tuple(result.summary(point) for point in points),
        metrics={name: tuple(values[chosen].tolist()) for name, values in result.columns.items()},
        objectives={name: tuple(values[chosen].tolist()) for name, values in result.objectives.items()},
    )


def _refused(result: BranchResult, start: int, rows: Sequence[RefusedRow]) -> Evaluations:
    return Evaluations(
        branch=result.branch.name,
        id=tuple(f"{result.name}/refused/{start + index}" for index in range(len(rows))),
        status=tuple(row.status for row in rows),
        reason=tuple(row.reason for row in rows),
        detail=tuple(row.detail for row in rows),
        used_gpus=tuple(row.gpus for row in rows),
        summary=tuple(row.summary for row in rows),
        metrics=dict.fromkeys(result.columns, (None,) * len(rows)),
        objectives=dict.fromkeys(result.objectives, (None,) * len(rows)),
    )


def _least(values: Floats, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float:
    return float(values[rows].min())
