"""Runs and their events, as the tests of the search need them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.defaults import run_spec
from dgdr_api.events import Completed, Evaluations, EventData, Resolved, RoundCompleted
from dgdr_api.request import RequestSpec
from dgdr_api.run import RunSpec
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.main import sweep

IMAGES = {
    "vllm": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2",
    "sglang": "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.4.2",
    "trtllm": "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:1.4.2",
}


def merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Objects key by key; None takes a key away."""
    result = dict(base)
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def run(backend: str = "vllm", **changes: Any) -> RunSpec:
    """Qwen3-32B on 16 H200, 3000/300, saturated, best throughput per GPU under ttft 1000 and itl 40; and changes."""
    base: dict[str, Any] = {
        "modelRef": {"name": "Qwen/Qwen3-32B"},
        "backends": [backend],
        "runtime": {"image": IMAGES[backend]}
        | ({"performanceDataVersion": {"vllm": "0.24.0"}} if backend == "vllm" else {}),
        "hardware": {"gpu": {"sku": "h200_sxm", "budget": 16}},
        "workload": {"static": {"isl": 3000, "osl": 300, "saturated": True}},
        "objective": {"mode": "optimize", "metric": "throughputPerGpu", "sla": {"ttftMs": 1000, "itlMs": 40}},
        "search": {"fidelity": "static"},
    }
    request = merged(base, changes)
    if request["objective"]["mode"] == "pareto":
        request["objective"].pop("metric", None)
    return run_spec(RequestSpec.model_validate(request))


def unbound(**changes: Any) -> RunSpec:
    """The same without latency targets."""
    objective = {"sla": None, **changes.pop("objective", {})}
    return run(objective=objective, **changes)


@dataclass(frozen=True)
class Events:
    """Everything that a search told, in order."""

    data: tuple[EventData, ...]

    @property
    def resolved(self) -> Resolved:
        first = self.data[0]
        assert isinstance(first, Resolved)
        return first

    @property
    def completed(self) -> Completed:
        last = self.data[-1]
        assert isinstance(last, Completed)
        return last

    @property
    def rounds(self) -> list[RoundCompleted]:
        return [each for each in self.data if isinstance(each, RoundCompleted)]

    @property
    def candidates(self) -> dict[str, EvaluatedCandidate]:
        return {each.id: each for each in self.data if isinstance(each, EvaluatedCandidate)}

    @property
    def reserve(self) -> list[EvaluatedCandidate]:
        """Candidates of the final reserve, in its order."""
        return [self.candidates[name] for name in self.completed.reserve]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Every evaluated or refused point."""
        names = ("id", "status", "reason", "detail", "used_gpus", "summary")
        return [
            {"branch": batch.branch, **dict(zip(names, values, strict=True))}
            for batch in self.data
            if isinstance(batch, Evaluations)
            for values in zip(*(getattr(batch, name) for name in names), strict=True)
        ]


def search(spec: RunSpec, catalog: Catalog, clock: Callable[[], float] = lambda: 0.0) -> Events:
    """Run a search to its end."""
    told: list[EventData] = []
    sweep(spec, told.append, catalog=catalog, clock=clock)
    return Events(tuple(told))


def deployment(candidate: EvaluatedCandidate) -> list[tuple[str, int, str, int]]:
    """(kind, workers, shape, batch) of each role."""
    return [(role.kind, role.workers, role.shape.label, role.engine.max_num_seqs) for role in candidate.candidate.roles]
