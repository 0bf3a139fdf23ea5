"""The figures of a replay, by the names of the contract (engine.md 7.3); units stand in the names."""

import math
from typing import Any

import numpy as np
from dgdr_api.replay_spec import ReplaySla

from dgdr_job.replay.errors import InvalidReplay
from dgdr_job.replay.gaps import Gaps
from dgdr_job.replay.outcome import COMPLETED, REJECTED_KV, REJECTED_TOKENS, Outcome
from dgdr_job.replay.plan import Plan
from dgdr_job.replay.requests import Ints, Requests

PERCENTILES = (50, 75, 90, 95, 99)
STATUS_NAMES = {
    COMPLETED: "completed",
    REJECTED_KV: "rejected: kv_capacity",
    REJECTED_TOKENS: "rejected: batched_tokens",
}
Floats = np.ndarray


def report(plan: Plan, requests: Requests, outcome: Outcome, sla: ReplaySla) -> dict[str, Any]:
    """The report of a replay.

    Requests of the warm-up are replayed and left out: counts, latencies and rates are those of the others, from the
    first of their arrivals to the last of their tokens. A figure without a sample is null.

    Raises:
        InvalidReplay: a figure is not finite.
    """
    measured = np.arange(len(requests)) >= requests.warmup
    done = np.flatnonzero(measured & (outcome.status == COMPLETED))
    ttft = (outcome.first_token_ns - outcome.arrival_ns)[done] / 1e6
    e2e = (outcome.last_token_ns - outcome.arrival_ns)[done] / 1e6
    several = done[requests.osl[done] > 1]
    tpot = (outcome.last_token_ns - outcome.first_token_ns)[several] / 1e6 / (requests.osl[several] - 1)
    start = int(outcome.arrival_ns[measured].min()) if measured.any() else 0
    end = int(outcome.last_token_ns[done].max()) if len(done) else start
    duration_ms = (end - start) / 1e6
    gpus = sum(role.workers * role.gpus_per_worker for role in (*plan.roles, *([plan.encode] if plan.encode else [])))
    tokens = int(requests.osl[done].sum())
    good = _good(requests, outcome, done, sla)
    whole_ms = int(outcome.last_token_ns.max(initial=0)) / 1e6
    made = {
        "completedRequests": len(done),
        "rejectedRequests": int((outcome.status[measured] > COMPLETED).sum()),
        "warmupRequests": requests.warmup,
        "durationMs": duration_ms,
        "requestThroughputPerS": _rate(len(done), duration_ms),
        "outputThroughputTokensPerS": _rate(tokens, duration_ms),
        "outputThroughputTokensPerSPerGpu": _rate(tokens, duration_ms) / gpus,
        "throughputPerUserTokensPerS": _per_user(outcome.gaps),
        "ttftMs": spread(ttft),
        "tpotMs": spread(tpot),
        "itlMs": gap_spread(outcome.gaps),
        "e2eMs": spread(e2e),
        "prefixReuseRatio": _ratio(int(outcome.reused_tokens[done].sum()), int(requests.isl[done].sum())),
        "preemptions": int(outcome.preemptions.sum()),
        "goodput": {
            "completedRequests": len(good),
            "requestsPerS": _rate(len(good), duration_ms),
            "outputTokensPerS": _rate(int(requests.osl[good].sum()), duration_ms),
        },
        "gpuHours": gpus * whole_ms / 3.6e6,
        "averageGpus": float(gpus),
    }
    _check_finite(made, "")
    return made


def request_rows(requests: Requests, outcome: Outcome, *, disaggregated: bool) -> list[dict[str, Any]]:
    """One row a request, in the order of their release; null where a thing never happened."""
    rows = []
    for at in range(len(requests)):
        first, last, arrival = (
            int(one[at]) for one in (outcome.first_token_ns, outcome.last_token_ns, outcome.arrival_ns)
        )
        osl = int(requests.osl[at])
        came = first >= 0
        main, decode = int(outcome.worker[at]), int(outcome.decode_worker[at])
        rows.append(
            {
                "id": at,
                "arrivalMs": _ms(arrival),
                "firstAdmitMs": _ms(int(outcome.admitted_ns[at])),
                "firstTokenMs": _ms(first),
                "lastTokenMs": _ms(last),
                "ttftMs": (first - arrival) / 1e6 if came else None,
                "itlMs": (last - first) / 1e6 / (osl - 1) if came and osl > 1 else None,
                "e2eMs": (last - arrival) / 1e6 if came else None,
                "inputTokens": int(requests.isl[at]),
                "outputTokens": osl if came else 0,
                "reusedInputTokens": int(outcome.reused_tokens[at]),
                "prefillWorker": main if disaggregated and main >= 0 else None,
                "decodeWorker": (decode if disaggregated else main) if came else None,
                "preemptions": int(outcome.preemptions[at]),
                "status": STATUS_NAMES[int(outcome.status[at])],
            }
        )
    return rows


def spread(values: Floats) -> dict[str, float | None]:
    """Mean, ends, population deviation and percentiles; a percentile is sorted[(n - 1) * p], rounded half up."""
    if not len(values):
        return dict.fromkeys(("mean", "min", "max", "std", *(f"p{one}" for one in PERCENTILES)))
    ordered = np.sort(values)
    return {
        "mean": float(np.mean(ordered)),
        "min": float(ordered[0]),
        "max": float(ordered[-1]),
        "std": float(np.std(ordered)),
        **{f"p{one}": float(ordered[_place(len(ordered), one)]) for one in PERCENTILES},
    }


def gap_spread(gaps: Gaps) -> dict[str, float | None]:
    """The same of the times between tokens: mean and ends are exact, the others within a thousandth."""
    if not gaps.count:
        return spread(np.zeros(0))
    middles, counts = gaps.values()
    mean = gaps.total_ns / gaps.count
    reached = np.cumsum(counts)
    return {
        "mean": mean / 1e6,
        "min": gaps.least_ns / 1e6,
        "max": gaps.most_ns / 1e6,
        "std": math.sqrt(float(np.sum(counts * (middles - mean) ** 2)) / gaps.count) / 1e6,
        **{
            f"p{one}": float(middles[np.searchsorted(reached, _place(gaps.count, one), side="right")]) / 1e6
            for one in PERCENTILES
        },
    }


def _place(count: int, percent: int) -> int:
    return int((2 * (count - 1) * percent + 100) // 200)


def _per_user(gaps: Gaps) -> float | None:
    """Mean of 1000 / gap in milliseconds; zero gaps are left out."""
    middles, counts = gaps.values()
    counts, middles = counts[middles > 0], middles[middles > 0]
    return float(np.sum(counts * 1e9 / middles) / counts.sum()) if counts.sum() else None


def _good(requests: Requests, outcome: Outcome, done: Ints, sla: ReplaySla) -> Ints:
    """Requests that keep every bound, inclusive; one of a single token keeps any bound on the time between tokens."""
    kept = np.ones(len(done), dtype=bool)
    first, last, arrival = outcome.first_token_ns[done], outcome.last_token_ns[done], outcome.arrival_ns[done]
    if sla.ttft_ms is not None:
        kept &= (first - arrival) / 1e6 <= sla.ttft_ms
    if sla.itl_ms is not None:
        kept &= (last - first) / 1e6 / np.maximum(requests.osl[done] - 1, 1) <= sla.itl_ms
    if sla.e2e_ms is not None:
        kept &= (last - arrival) / 1e6 <= sla.e2e_ms
    return done[kept]


def _rate(count: int, duration_ms: float) -> float:
    return count / (duration_ms / 1000) if duration_ms > 0 else 0.0


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _ms(time_ns: int) -> float | None:
    return time_ns / 1e6 if time_ns >= 0 else None


def _check_finite(value: Any, name: str) -> None:  # noqa: ANN401 - a report or a part of one
    if isinstance(value, dict):
        for key, one in value.items():
            _check_finite(one, f"{name}.{key}" if name else key)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidReplay(f"the figure {name} is {value}: invalid_metrics")
