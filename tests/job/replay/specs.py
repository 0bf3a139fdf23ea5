"""Small documents for tests."""

from typing import Any

from dgdr_api.replay_spec import ReplaySpec

from tests.job.replay.peer_cases import QUANTIZATION

ONE_GPU = {"tp": 1, "pp": 1, "attentionDp": 1, "moeTp": 1, "moeEp": 1, "cp": 1}


def role(
    kind: str = "agg", workers: int = 1, backend: str = "vllm", timing: Any = None, **engine: Any
) -> dict[str, Any]:
    """A role with the limits of the whole-run check where none are given."""
    limits = {
        "maxNumSeqs": 256,
        "maxNumBatchedTokens": 8192,
        "blockSize": 64,
        "numGpuBlocks": 16384,
        "maxSequenceLength": 1 << 20,
        "enablePrefixCaching": True,
    }
    return {
        "kind": kind,
        "workers": workers,
        "gpusPerWorker": 1,
        "backend": backend,
        "sku": "h200_sxm",
        "engineVersion": "1.0.0",
        "dataVersion": "1.0.0",
        "shape": ONE_GPU,
        "quantization": QUANTIZATION,
        "memoryFraction": 0.9,
        "engine": limits | engine,
        "timing": timing or {"type": "polynomial"},
    }


def static(**fields: Any) -> dict[str, Any]:
    """A generated workload."""
    return {"static": fields}


def aggregated(workload: dict[str, Any], *, others: dict[str, Any] | None = None, **fields: Any) -> ReplaySpec:
    """One aggregated role."""
    return ReplaySpec.model_validate(
        {"topology": "agg", "roles": [role(**fields)], "workload": workload, **(others or {})}
    )


def disaggregated(
    workload: dict[str, Any], prefill: dict[str, Any], decode: dict[str, Any], **others: Any
) -> ReplaySpec:
    """A prefill and a decode role."""
    return ReplaySpec.model_validate({"topology": "disagg", "roles": [prefill, decode], "workload": workload, **others})
