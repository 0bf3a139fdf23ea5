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


def print_summary(publisher: "Publisher", out: Path, target: "Console | None" = None) -> None:
    """Print everything that a person wants to know after a search."""
    target = target or console()
    status = publisher.status
    _candidates(publisher.candidates, target)
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


def _candidates(candidates: "Sequence[DynamoGraphDeploymentCandidate]", target: "Console") -> None:
    if not candidates:
        return
    columns = ("rank", "deployment", "GPUs", "score", "tok/s", "tok/s/GPU", "tok/s/user", "TTFT ms", "ITL ms", "name")
    left = ("deployment", "name")
    rows = []
    for place, candidate in enumerate(candidates, start=1):
        status = candidate.status
        evaluation = None if status is None else status.evaluation
        if status is None or evaluation is None:
            continue
        metrics = evaluation.metrics
        rows.append(
            [
                str(status.rank or place),
                deployment(candidate),
                str(evaluation.used_gpus),
                f"{evaluation.score:.4g}",
                *(
                    f"{metrics[name]:.1f}" if name in metrics else ""
                    for name in (
                        "outputThroughputTokensPerS",
                        "outputThroughputTokensPerSPerGpu",
                        "throughputPerUserTokensPerS",
                        "ttftMs",
                        "tpotMs",
                    )
                ),
                candidate.metadata.name,
            ]
        )
    print_table("Candidates", [(name, name not in left) for name in columns], rows, target)


def deployment(candidate: "DynamoGraphDeploymentCandidate") -> str:
    """The roles of a candidate in one line, e.g. ``vllm 11 x prefill tp1, 2 x decode tp2``."""
    from dgdr_api.replay_spec import ReplaySpec

    if candidate.status is None or candidate.status.evaluation is None:
        return ""
    spec = ReplaySpec.model_validate(candidate.status.evaluation.replay_spec)
    roles = ", ".join(f"{role.workers} x {role.kind} {role.shape.label}" for role in spec.roles)
    return f"{spec.roles[0].backend} {roles}"


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
            [branch, reason, str(count), examples[branch, reason]]
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
