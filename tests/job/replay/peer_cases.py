"""A case in the words of Dynamo's replay, as our document."""

import json
from pathlib import Path
from typing import Any

from dgdr_api.replay_spec import ReplaySpec

QUANTIZATION = {"gemm": "float16", "moe": "float16", "kv": "float16", "attention": "float16", "communication": "half"}
LONGEST = 2**31 - 1


def document(case: dict[str, Any], trace: Path) -> ReplaySpec:
    """Write the trace of a case and return the ReplaySpec that replays it."""
    trace.write_text("".join(json.dumps(line) + "\n" for line in case["trace"]))
    options = case["options"]
    agg = "extra_engine_args" in options
    kinds = (
        [("agg", options["extra_engine_args"], options.get("num_workers", 1))]
        if agg
        else [
            ("prefill", options["prefill_engine_args"], options.get("num_prefill_workers", 1)),
            ("decode", options["decode_engine_args"], options.get("num_decode_workers", 1)),
        ]
    )
    first = kinds[0][1]
    return ReplaySpec.model_validate(
        {
            "topology": "agg" if agg else "disagg",
            "roles": [_role(kind, arguments, workers) for kind, arguments, workers in kinds],
            "kvTransfer": {
                "bandwidthGBps": first.get("kv_transfer_bandwidth"),
                "bytesPerToken": first.get("kv_transfer_bytes_per_token"),
                "mode": {"full_prompt": "fullPrompt", "destination_missing": "destinationMissing"}[
                    first.get("kv_transfer_timing_mode", "full_prompt")
                ],
            },
            "router": {
                "mode": {"round_robin": "roundRobin", "kv_router": "kv"}[options.get("router_mode", "round_robin")]
            },
            "workload": {
                "trace": {
                    "path": str(trace),
                    "blockSize": case["trace_block_size"],
                    "concurrency": options.get("replay_concurrency"),
                }
            },
        }
    )


def _role(kind: str, arguments: dict[str, Any], workers: int) -> dict[str, Any]:
    ranks = arguments.get("dp_size", 1)
    shape = {"tp": 1, "pp": 1, "attentionDp": ranks, "moeTp": 1, "moeEp": ranks, "cp": 1}
    timing = arguments["timing_model"]
    return {
        "kind": kind,
        "workers": workers,
        "gpusPerWorker": ranks,
        "backend": arguments["backend"],
        "sku": "h200_sxm",
        "engineVersion": "1.0.0",
        "dataVersion": "1.0.0",
        "shape": shape,
        "quantization": QUANTIZATION,
        "memoryFraction": 0.9,
        "engine": {
            "maxNumSeqs": arguments["max_num_seqs"],
            "maxNumBatchedTokens": arguments["max_num_batched_tokens"],
            "blockSize": arguments["block_size"],
            "numGpuBlocks": arguments["num_gpu_blocks"],
            "maxSequenceLength": LONGEST,
            "enablePrefixCaching": arguments.get("enable_prefix_caching", True),
            "enableChunkedPrefill": arguments.get("enable_chunked_prefill", True),
            "preemption": {"lifo": "newest", "fifo": "oldest"}[arguments.get("preemption_mode", "lifo")],
        },
        "timing": {"type": "polynomial"}
        if timing["type"] == "polynomial"
        else {"type": "fixed", "prefillMs": timing["prefill_ms"], "decodeMs": timing["decode_ms"]},
    }
