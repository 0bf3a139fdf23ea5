"""The configuration is whole: every key of the specification, with its default and bounds, and who sets it."""

from typing import Any

import pytest
from dgdr_api.documented import DocumentedSchema
from dgdr_job.search.config import SmartSearchConfig
from dgdr_job.search.mapper import OWNER
from dgdr_job.search.problems import part_of
from pydantic import BaseModel

KEYS: dict[str, Any] = {
    "search_space.model_name": ...,
    "search_space.model_config_path": None,
    "search_space.hardware_sku": ...,
    "search_space.prefill_hardware_sku": None,
    "search_space.decode_hardware_sku": None,
    "search_space.deployment_mode": ("agg", "disagg"),
    "search_space.backend": ("vllm",),
    "search_space.backend_version": {},
    "search_space.gpu_budget": 32,
    "search_space.min_gpu_budget": 1,
    "search_space.context_length": None,
    "search_space.gpus_per_worker": (1, 2, 4, 8, 16),
    "search_space.parallel_configs": None,
    "search_space.max_prefill_workers": None,
    "search_space.max_decode_workers": None,
    "search_space.max_prefill_gpus": None,
    "search_space.max_decode_gpus": None,
    "search_space.prefill_max_num_batched_tokens": (8192, 16384, 32768),
    "search_space.decode_max_num_batched_tokens": (8192,),
    "search_space.agg_max_num_batched_tokens": (8192, 16384, 32768),
    "search_space.prefill_max_num_seqs": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "search_space.decode_max_num_seqs": (256, 512, 1024),
    "search_space.agg_max_num_seqs": (256, 512, 1024),
    "search_space.prefill_block_size": None,
    "search_space.decode_block_size": None,
    "search_space.agg_block_size": None,
    "search_space.prefill_gpu_memory_utilization": None,
    "search_space.decode_gpu_memory_utilization": None,
    "search_space.agg_gpu_memory_utilization": None,
    "search_space.prefill_enable_prefix_caching": (True,),
    "search_space.decode_enable_prefix_caching": (False,),
    "search_space.agg_enable_prefix_caching": (True,),
    "search_space.kv_transfer_bandwidth": None,
    "search_space.nextn": None,
    "search_space.encoder": "inline",
    "search_space.encode.hardware_sku": None,
    "search_space.encode.tp": (1, 2, 4, 8),
    "search_space.encode.batch_size": (1, 2, 4, 8),
    "search_space.encode.max_workers": None,
    "search_space.encode.latency_correction": 1.0,
    "search_space.encode.rate_degradation": 0.9,
    "workload.isl": ...,
    "workload.osl": ...,
    "sweep.fidelity": "replay",
    "sweep.max_rounds": None,
    "sweep.parallel_evals": None,
    "sweep.candidates_per_round": None,
    "sweep.max_eval_seconds": 600,
    "sweep.max_trials": None,
    "sweep.seed": 42,
    "sweep.strategy": "auto",
    "adapters.planner": None,
}
"""Engine.md section 1: key and default; ``...``: there is none."""

BY_PARAMETERS = {
    "search_space.gpus_per_worker",
    "search_space.parallel_configs",
    "search_space.max_prefill_workers",
    "search_space.max_decode_workers",
    "search_space.max_prefill_gpus",
    "search_space.max_decode_gpus",
    *(
        f"search_space.{role}_{knob}"
        for role in ("prefill", "decode", "agg")
        for knob in (
            "max_num_batched_tokens",
            "max_num_seqs",
            "block_size",
            "gpu_memory_utilization",
            "enable_prefix_caching",
        )
    ),
    "search_space.kv_transfer_bandwidth",
    "search_space.nextn",
    *(
        f"search_space.encode.{name}"
        for name in ("tp", "batch_size", "free_batch", "max_workers", "latency_correction", "rate_degradation")
    ),
    "sweep.max_trials",
    "sweep.seed",
    "sweep.strategy",
    *(
        f"rate_matching.{name}"
        for name in (
            "prefill_batches",
            "agg_ctx_tokens",
            "prefill_latency",
            "decode_latency",
            "prefill_rate",
            "decode_rate",
            "disagg_ttft",
        )
    ),
}
"""The keys that a request sets by search.parameters: no field of its own does."""


def keys(model: type[BaseModel], path: str = "") -> dict[str, Any]:
    """Every key that holds a value, with its default."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        part = part_of(field.annotation)
        if part is None or part.__name__ in {"Router", "Planner"}:
            found[f"{path}{name}"] = ... if field.is_required() else field.default
        else:
            found |= keys(part, f"{path}{name}.")
    return found


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_specification_exists_with_its_default(key: str) -> None:
    assert keys(SmartSearchConfig)[key] == KEYS[key]


def test_every_key_is_set_by_one_field_of_the_request_or_by_search_parameters() -> None:
    owned = {key for key in keys(SmartSearchConfig) if key in OWNER or key.partition(".")[0] in OWNER}
    assert set(keys(SmartSearchConfig)) - owned == BY_PARAMETERS


def test_every_key_is_described() -> None:
    parts = SmartSearchConfig.model_json_schema(schema_generator=DocumentedSchema)["$defs"]
    missing = [
        f"{part}.{name}"
        for part in ("SearchSpace", "Encode", "ImageInput", "Workload", "Goal", "Sla", "Sweep", "Adapters", "Runtime")
        for name, field in parts[part]["properties"].items()
        if not field.get("description")
    ]
    assert missing == ["Sla.ttft_ms", "Sla.itl_ms", "Sla.e2e_ms"], "the part says what these are"
