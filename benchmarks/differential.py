"""Our reference replay beside Dynamo 1.6.1's on random small cases; a difference is shrunk and written down.

Run with ``make differential``; ``python -m benchmarks.differential --kind vllm-agg --examples 500`` for one kind.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dgdr_job.replay.outcome import Outcome
from dgdr_job.replay.reference.cluster import replay
from dgdr_job.replay.requests import Requests
from dgdr_job.replay.spec_plan import plan_of
from dgdr_job.replay.workload import requests_of
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.differential_cases import cases
from benchmarks.replay_peer import Peer
from tests.job.replay.peer_cases import document

KINDS = [f"{backend}-{topology}" for backend in ("vllm", "trtllm", "sglang") for topology in ("agg", "disagg")]
TOLERANCE_MS = 2e-6
Row = tuple[float, ...]


def main() -> int:
    """Run the command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=[*KINDS, "vllm-agg-kv", "vllm-disagg-kv"])
    parser.add_argument("--examples", type=int, default=400, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/differential"), help="where differences are written")
    arguments = parser.parse_args()
    peer = Peer(patience_s=2)
    failed = 0
    for kind in arguments.kind or KINDS:
        started = time.monotonic()
        counts, difference = compare_kind(peer, kind, arguments.examples, arguments.seed)
        took = time.monotonic() - started
        print(f"{kind}: {counts['equal']} equal, {counts['refused']} refused by the peer, {took:.0f} s")
        if difference is not None:
            failed += 1
            arguments.out.mkdir(parents=True, exist_ok=True)
            path = arguments.out / f"{kind}.json"
            path.write_text(json.dumps(difference, indent=1) + "\n")
            print(f"{kind}: DIFFERENT, see {path}")
    peer.close()
    return int(failed > 0)


def compare_kind(peer: Peer, kind: str, examples: int, number: int) -> tuple[dict[str, int], dict[str, Any] | None]:
    """Compare random cases of a kind. Returns counts, and the smallest case that differs, if one does."""
    backend, topology, *router = kind.split("-")
    counts = {"equal": 0, "refused": 0}
    last: dict[str, Any] = {}
    refusals: dict[str, int] = {}

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(cases(backend, topology, "kv_router" if router else "round_robin"))
    def run(case: dict[str, Any]) -> None:
        theirs = peer.replay(case)
        if "error" in theirs:
            counts["refused"] += 1
            refusals[theirs["error"][:200]] = refusals.get(theirs["error"][:200], 0) + 1
            run_alone(case, replay)  # what the peer cannot finish must end here
            return
        found = difference_of(case, theirs, replay)
        if found is not None:
            last.update(case=case, difference=found, expected=theirs)
        assert found is None
        counts["equal"] += 1

    try:
        run()
    except AssertionError:
        return counts, last
    finally:
        print(*(f"  {text}: {count}" for text, count in refusals.items()), sep="\n")
    return counts, None


def difference_of(
    case: dict[str, Any], theirs: dict[str, Any], engine: Callable[..., Outcome]
) -> dict[str, Any] | None:
    """The first request whose times differ, ours beside theirs; None when all are equal."""
    requests, outcome = run_alone(case, engine)
    ours = sorted(
        (
            outcome.arrival_ns[at] / 1e6,
            float(requests.isl[at]),
            float(requests.osl[at]),
            outcome.admitted_ns[at] / 1e6,
            outcome.first_token_ns[at] / 1e6,
            outcome.last_token_ns[at] / 1e6,
            float(outcome.reused_tokens[at]),
        )
        for at in range(len(requests))
    )
    other = sorted(
        (
            row["arrival_time_ms"],
            float(row["input_length"]),
            float(row["output_length"]),
            row["first_admit_ms"],
            row["first_token_ms"],
            row["last_token_ms"],
            float(row["reused_input_tokens"]),
        )
        for row in theirs["per_request"]
    )
    return first_difference(ours, other)


def run_alone(case: dict[str, Any], engine: Callable[..., Outcome]) -> tuple[Requests, Outcome]:
    """Replay a case with an engine of ours."""
    with tempfile.TemporaryDirectory() as folder:
        spec = document(case, Path(folder, "trace.jsonl"))
        requests = requests_of(spec, Path(folder))
        return requests, engine(plan_of(spec, Path(folder)), requests)


def first_difference(ours: Sequence[Row], theirs: Sequence[Row]) -> dict[str, Any] | None:
    """The first pair of rows that differ."""
    if len(ours) != len(theirs):
        return {"ours": len(ours), "theirs": len(theirs)}
    for mine, other in zip(ours, theirs, strict=True):
        if any(abs(a - (b if b is not None else -1)) > TOLERANCE_MS for a, b in zip(mine, other, strict=True)):
            return {"ours": [float(one) for one in mine], "theirs": list(other)}
    return None


if __name__ == "__main__":
    sys.exit(main())
