"""The closed vocabularies of the contract, spelled as the field spells them. Free of pydantic for the command line.

Each is a ``Literal`` for types and a tuple for loops; the tuple's order is the order in which things are listed.
"""

from typing import Literal, get_args

Backend = Literal["vllm", "sglang", "trtllm"]
Topology = Literal["agg", "disagg"]
RoleKind = Literal["agg", "prefill", "decode", "encode"]
Fidelity = Literal["replay", "static"]
EncoderPlacement = Literal["Inline", "Disaggregated"]
Metric = Literal[
    "throughput",
    "throughputPerGpu",
    "throughputPerUser",
    "throughputPerCost",
    "ttft",
    "e2eLatency",
    "goodput",
    "goodputPerGpu",
    "minGpus",
]
Outcome = Literal["SearchSucceeded", "BudgetExhausted", "NoFeasibleCandidate", "Unsupported", "NothingRenderable"]
"""How a search ends when nothing failed; the reasons of the run's ``Completed`` condition of the same names."""

PointStatus = Literal["feasible", "infeasible", "pruned", "unsupported", "timed_out", "failed"]
ReasonCategory = Literal[
    "gpu_budget",
    "kv_capacity",
    "sla_constraint",
    "load_constraint",
    "backend_topology",
    "runtime_timeout",
    "resource_limit",
    "candidate_materialization",
    "replay_runtime",
    "invalid_metrics",
    "no_samples",
    "adapter_constraint",
]

BACKENDS: tuple[Backend, ...] = get_args(Backend)
TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)
METRICS: tuple[Metric, ...] = get_args(Metric)

LOWER_IS_BETTER: frozenset[Metric] = frozenset({"ttft", "e2eLatency", "minGpus"})
"""Metrics whose score is the negated value: scores are higher-is-better everywhere."""
