"""Candidates, runs and events for the tests of the publisher."""

from collections.abc import Sequence
from typing import Any

from dgdr_api.base import wire
from dgdr_api.candidate import Candidate, EvaluatedCandidate, Evaluation, RoleMemory, Shares
from dgdr_api.defaults import run_spec
from dgdr_api.events import (
    BranchPlan,
    CandidateEvent,
    Completed,
    CompletedEvent,
    Counters,
    Evaluations,
    EvaluationsEvent,
    Event,
    EventData,
    Failed,
    FailedEvent,
    Resolved,
    ResolvedEvent,
    RoundCompleted,
    RoundCompletedEvent,
    TupleCoverage,
    VersionLink,
)
from dgdr_api.group import (
    ANNOTATION_INPUT_HASH,
    ANNOTATION_REQUEST_NAME,
    LABEL_GENERATION,
    LABEL_REQUEST_UID,
)
from dgdr_api.identity import input_hash, laptop_uid, run_name
from dgdr_api.metadata import ObjectMeta
from dgdr_api.replay_spec import ReplaySpec
from dgdr_api.request import RequestSpec
from dgdr_api.run import DynamoGraphDeploymentRun, RunSpec
from dgdr_api.shape import Shape
from dgdr_publisher.rendering import candidate_id

MODEL = "Qwen/Qwen3-32B"
NOW = "2026-11-30T12:00:00Z"
IMAGES = {
    ("vllm", "0.26.0"): "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2",
    ("sglang", "0.5.16"): "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.4.0",
    ("sglang", "0.5.14"): "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.3.1",
}
DATA_VERSIONS = {"0.26.0": "0.24.0"}
"""Data that stands in for an engine version without data of its own."""


def role(
    kind: str,
    shape: dict[str, int] | None = None,
    *,
    workers: int = 1,
    backend: str = "vllm",
    version: str = "0.26.0",
    sku: str = "h200_sxm",
    kv: str = "bfloat16",
    memory_fraction: float = 0.92,
    nextn: int = 0,
    data: str | None = None,
    **engine: Any,
) -> dict[str, Any]:
    """A ReplayRole as a document."""
    parallel = Shape(**(shape or {}))
    limits = {
        "maxNumSeqs": 256,
        "maxNumBatchedTokens": 8192,
        "blockSize": 64,
        "numGpuBlocks": 16384,
        "maxSequenceLength": 3300,
        "enablePrefixCaching": kind != "decode",
    }
    formats = {"gemm": "fp8_block", "moe": "fp8_block", "kv": kv, "attention": "bfloat16", "communication": "half"}
    return {
        "kind": kind,
        "workers": workers,
        "gpusPerWorker": parallel.gpus,
        "backend": backend,
        "sku": sku,
        "engineVersion": version,
        "dataVersion": data or DATA_VERSIONS.get(version, version),
        "shape": wire(parallel),
        "quantization": formats,
        "memoryFraction": memory_fraction,
        "nextn": nextn,
        "engine": limits | engine,
        "timing": {"type": "polynomial"},
    }


def evaluated(
    *roles: dict[str, Any],
    model: str = MODEL,
    score: float = 100.0,
    name: str | None = None,
    **spec: Any,
) -> EvaluatedCandidate:
    """A candidate of these roles; ``spec`` sets further fields of its ReplaySpec."""
    topology = "agg" if roles[0]["kind"] == "agg" else "disagg"
    workload = {"static": {"isl": 3000, "osl": 300, "concurrency": 256}}
    document = {"topology": topology, "roles": list(roles), "workload": workload} | spec
    replay = ReplaySpec.model_validate(document)
    parameters = {"fidelity": "static", "seed": 42, "performanceModel": "model 1"}
    candidate = Candidate.of_replay_spec(replay, model=model, parameters=parameters)
    metrics = {"ttftMs": 544.561, "tpotMs": 39.0112, "outputThroughputTokensPerSPerGpu": score}
    return EvaluatedCandidate(
        id=name or candidate_id(candidate),
        candidate=candidate,
        replay_spec=replay,
        evaluation=Evaluation(
            score=score,
            used_gpus=candidate.used_gpus,
            objectives={"throughputPerGpu": score},
            metrics=metrics,
            memory={one.kind: RoleMemory(weights_gib=16.5, kv_tokens=1_048_576) for one in candidate.roles},
            provenance=Shares(silicon=0.75, empirical=0.25),
        ),
    )


def spec(
    backend: str = "vllm",
    version: str = "0.26.0",
    *,
    model: dict[str, Any] | None = None,
    gpu: dict[str, Any] | None = None,
    **fields: Any,
) -> RunSpec:
    """The run spec of a request that such a candidate answers."""
    runtime: dict[str, Any] = {"image": IMAGES[backend, version]}
    if version in DATA_VERSIONS:
        runtime["performanceDataVersion"] = {backend: DATA_VERSIONS[version]}
    document = {
        "modelRef": {"name": MODEL} | (model or {}),
        "backends": [backend],
        "runtime": runtime,
        "hardware": {"gpu": {"sku": "h200_sxm", "budget": 64} | (gpu or {})},
        "workload": {"static": {"isl": 3000, "osl": 300, "concurrency": 256}},
        "objective": {"mode": "optimize", "metric": "throughputPerGpu"},
        "search": {"fidelity": "static"},
    } | fields
    return run_spec(RequestSpec.model_validate(document))


def run(of: RunSpec | None = None, name: str = "qwen") -> DynamoGraphDeploymentRun:
    """A run as a laptop makes it."""
    of = of or spec()
    uid = laptop_uid("default", name)
    return DynamoGraphDeploymentRun(
        metadata=ObjectMeta(
            name=run_name(name, 1, uid),
            uid=laptop_uid("default", run_name(name, 1, uid)),
            labels={LABEL_REQUEST_UID: uid, LABEL_GENERATION: "1"},
            annotations={ANNOTATION_REQUEST_NAME: name, ANNOTATION_INPUT_HASH: input_hash(of)},
        ),
        spec=of,
    )


AGG = evaluated(role("agg", {"tp": 2}, workers=2), score=90.0)
DISAGG = evaluated(role("prefill", workers=2), role("decode", {"tp": 2}, workers=4), score=100.0)
REFUSED = evaluated(role("agg", {"tp": 2}, preemption="oldest"), score=120.0)


def resolved() -> Resolved:
    """A search space of one branch."""
    return Resolved(
        branches=(BranchPlan(name="vllm/disagg", backend="vllm", topology="disagg", pool=12),),
        coverage=(
            TupleCoverage(
                backend="vllm", topology="disagg", skus={"prefill": "h200_sxm"}, supported=True, reason="Supported"
            ),
        ),
        versions=(
            VersionLink(
                backend="vllm",
                sku="h200_sxm",
                runtime="1.4.2",
                engine="0.26.0",
                performance_data="0.24.0",
                pinned=True,
            ),
        ),
        limits={"gpuBudget": 64, "seed": 42},
    )


def points(*candidates: EvaluatedCandidate) -> Evaluations:
    """A batch of points: these, and an infeasible one."""
    ids = (*(one.id for one in candidates), "0123456789abcdef")
    return Evaluations(
        branch="vllm/disagg",
        id=ids,
        status=(*("feasible" for _ in candidates), "infeasible"),
        reason=(*(None for _ in candidates), "sla_constraint"),
        detail=(*("" for _ in candidates), "ttft 900 > 500"),
        used_gpus=(*(one.candidate.used_gpus for one in candidates), 3),
        summary=(*("deployment" for _ in candidates), "too slow"),
        metrics={"ttftMs": (*(544.561 for _ in candidates), 900.0)},
        objectives={"throughputPerGpu": (*(one.evaluation.score for one in candidates), None)},
    )


COUNTERS = Counters(scheduled=12, feasible=3, infeasible=1, pruned=8)


def events(
    *candidates: EvaluatedCandidate, of: DynamoGraphDeploymentRun | None = None, outcome: str = "SearchSucceeded"
) -> list[Event]:
    """A whole search that found these candidates, best first."""
    ids = tuple(one.id for one in candidates)
    said: list[EventData] = [
        resolved(),
        points(*candidates),
        *candidates,
        RoundCompleted(branch="vllm/disagg", round=1, total=1, counters=COUNTERS, reserve=ids),
        Completed.model_validate(
            {"outcome": outcome, "message": "found", "counters": COUNTERS, "reserve": ids, "proven_best": True}
        ),
    ]
    return numbered(said, of or run())


def numbered(said: Sequence[EventData], of: DynamoGraphDeploymentRun, attempt: str = "laptop") -> list[Event]:
    """Events of an attempt, in order."""
    uid = of.metadata.uid
    assert uid is not None
    kinds: dict[type, Any] = {
        Resolved: ResolvedEvent,
        Evaluations: EvaluationsEvent,
        EvaluatedCandidate: CandidateEvent,
        RoundCompleted: RoundCompletedEvent,
        Completed: CompletedEvent,
        Failed: FailedEvent,
    }
    return [
        kinds[type(data)](seq=seq, attempt=attempt, run_uid=uid, time=NOW, data=data)
        for seq, data in enumerate(said, start=1)
    ]
