"""What a search found, for the terminal: candidates, what was refused and why, the version chain, the files."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from dgdr_cli.tables import console, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
    from dgdr_api.events import Evaluations
    from dgdr_api.run import RunStatus
    from dgdr_publisher.publisher import Publisher
    from rich.console import Console

MAX_REASONS = 8
MEASURES = {
    "outputThroughputTokensPerS": "tok/s",
    "outputThroughputTokensPerSPerGpu": "tok/s/GPU",
    "throughputPerUserTokensPerS": "tok/s/user",
    "ttftMs": "TTFT ms",
    "tpotMs": "ITL ms",
}
"""Column by metric of a candidate."""
SHOWN_BY = {
    "outputThroughputTokensPerS": "throughput",
    "outputThroughputTokensPerSPerGpu": "throughputPerGpu",
    "throughputPerUserTokensPerS": "throughputPerUser",
    "ttftMs": "ttft",
}
"""The objective whose column would say the same."""
TEXTS = ("deployment", "name")
"""Columns that hold no numbers."""
KNEE = "*"


def print_summary(publisher: "Publisher", out: Path, target: "Console | None" = None) -> None:
    """Print everything that a person wants to know after a search."""
    target = target or console()
    status = publisher.status
    _candidates(publisher, target)
    _refused(publisher.evaluations, target)
    _versions(status, target)
    for condition in status.conditions:
        if condition.type in ("Supported", "VersionBound", "Published") and condition.message:
            target.print(f"{condition.type}={condition.status}/{condition.reason}: {condition.message}", markup=False)
    if status.outcome is not None:
        target.print(f"{status.outcome.reason}: {status.outcome.message}", markup=False)
    if publisher.candidates:
        target.print("A static estimate: rates are matched, nothing is replayed; queueing is a constant.", style="dim")
        target.print(f"Best: {out / 'dgd.yaml'}   all: {out / 'candidates'}", markup=False)


def _candidates(publisher: "Publisher", target: "Console") -> None:
    """The published candidates: ranked ones by rank, points of a front in their order, its knee marked."""
    evaluated = [
        (candidate.metadata.name, candidate.status.rank, deployment(candidate), candidate.status.evaluation)
        for candidate in publisher.candidates
        if candidate.status is not None and candidate.status.evaluation is not None
    ]
    if not evaluated:
        return
    objectives = list(evaluated[0][3].objectives)
    measures = {name: title for name, title in MEASURES.items() if SHOWN_BY.get(name) not in objectives}
    ranked = evaluated[0][1] is not None
    rows = [
        [
            str(rank) if rank is not None else f"{KNEE} {place}" if name == publisher.best_name else str(place),
            roles,
            f"{found.used_gpus:,}",
            *(objective_text(each, found.objectives[each]) for each in objectives),
            *(f"{found.metrics[each]:,.1f}" if each in found.metrics else "" for each in measures),
            name,
        ]
        for place, (name, rank, roles, found) in enumerate(evaluated, start=1)
    ]
    columns = ["rank" if ranked else "#", "deployment", "GPUs", *objectives, *measures.values(), "name"]
    print_table("Candidates", [(name, name not in TEXTS) for name in columns], rows, target)
    if not ranked and publisher.best_name is not None:
        target.print(f"{KNEE} the knee of the front, in dgd.yaml: the greatest product of the scaled objectives")


def objective_text(name: str, value: float) -> str:
    """The value of an objective with its unit, e.g. ``10,917 tok/s``."""
    from dgdr_publisher.candidate_status import UNITS, rounded

    unit = next((unit for metric, unit in UNITS.items() if metric == name), "")
    whole, point, rest = rounded(value).partition(".")
    return f"{int(whole):,}{point}{rest} {unit}".strip() if whole.isdecimal() else f"{rounded(value)} {unit}".strip()


def deployment(candidate: "DynamoGraphDeploymentCandidate") -> str:
    """The roles of a candidate in one line, e.g. ``vllm 11 x prefill tp1, 2 x decode tp2``."""
    from dgdr_api.replay_spec import ReplaySpec, roles_text

    if candidate.status is None or candidate.status.evaluation is None:
        return ""
    spec = ReplaySpec.model_validate(candidate.status.evaluation.replay_spec)
    return f"{spec.roles[0].backend} {roles_text(spec.roles)}"


def _refused(batches: "Sequence[Evaluations]", target: "Console") -> None:
    """The commonest reasons of what is not feasible, with one example each."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    for batch in batches:
        for status, reason, detail, summary in zip(
            batch.status, batch.reason, batch.detail, batch.summary, strict=True
        ):
            if status != "feasible":
                key = (batch.branch, reason or status)
                counts[key] += 1
                examples.setdefault(key, f"{summary}: {detail}")
    if counts:
        rows = [
            [branch, reason, f"{count:,}", examples[branch, reason]]
            for (branch, reason), count in counts.most_common(MAX_REASONS)
        ]
        columns = [("branch", False), ("reason", False), ("shapes", True), ("example", False)]
        print_table("Gated out", columns, rows, target)


def _versions(status: "RunStatus", target: "Console") -> None:
    if status.versions:
        rows = [
            [link.backend, link.sku, link.runtime, link.engine, link.performance_data, link.renderer or ""]
            for link in status.versions
        ]
        names = ("backend", "GPU", "runtime", "engine", "performance data", "template")
        print_table("Version chain", [(name, False) for name in names], rows, target)
