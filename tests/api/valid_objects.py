"""Valid requests that come close to a rule: both sides must accept them."""

from typing import Any

from tests.api.objects import request

STATIC = "workload.static"
TTFT_ITL = {"ttftMs": 1000, "itlMs": 40}
PVC = {"source": {"pvc": {"claimName": "traces", "path": "a/..b/c.jsonl"}}}
LOAD = {"isl": 1, "osl": 1}
IMAGES = {"height": 448, "width": 448, "count": 2}

VALID: dict[str, dict[str, Any]] = {
    "minimal": request(),
    "remote code": request(
        ("modelRef.remoteCode", "TrustCacheAndRevision"),
        ("modelRef.revision", "abc"),
        ("modelRef.cache", {"pvc": {"name": "models", "modelPath": "", "mountPath": "/models"}}),
        ("modelRef.tokenSecret", {"name": "hf-token-secret", "key": "HF_TOKEN"}),
    ),
    "always trust": request(("modelRef.remoteCode", "AlwaysTrust")),
    "names with dots": request(("modelRef.name", "Qwen/Qwen3..5-VL.")),
    "awkward model names": request(
        ("modelRef.name", "registry.local:5000/Org_1/model@v1+x.None"),
        ("modelRef.revision", "refs/pr/1.2-rc+1_None"),
        (
            "modelRef.cache",
            {"pvc": {"name": "a.b-1.c", "modelPath": "a b/..c/v1:2@x+y=z~/", "mountPath": "/m n/..a/.b/a..@+=~/"}},
        ),
    ),
    "mount beside shared memory": request(("modelRef.cache", {"pvc": {"name": "m", "mountPath": "/dev/shm2"}})),  # noqa: S108
    "keys": request(
        ("modelRef.tokenSecret", {"name": "a" * 253, "key": ".HF_token-1"}),
        ("modelRef.config", {"configMap": {"name": "1.2", "key": "_", "quantKey": "a" * 253}}),
    ),
    "image of a registry with port, tag and digest": request(
        ("runtime.image", f"Registry.Local:5000/a__b/c.d--e_f/sglang-runtime:1.4.2_X-y.z@sha256:{'0a' * 32}"),
        ("image", f"localhost/sweeper@sha512:{'f' * 128}"),
    ),
    "longest image": request(
        ("runtime.image", f"{'x' * 253}/y:{'1' * 128}@sha512:{'f' * 128}"), ("runtime.versionOverride", "1.4.2")
    ),
    "labels": request(
        (
            "hardware.gpu.nodeSelector",
            {
                "h200": {
                    "a": "",
                    "A_b.c-1": "x" * 63,
                    "nvidia.com/gpu.product": "NVIDIA-H200",
                    f"{'a' * 253}/b": "1_.-1",
                }
            },
        )
    ),
    "config": request(
        ("modelRef.config", {"configMap": {"name": "qwen", "key": "config.json", "quantKey": "quant.json"}})
    ),
    "all backends": request(
        ("backends", ["trtllm", "vllm", "sglang"]),
        ("runtime.performanceDataVersion", {"vllm": "0.24.0", "trtllm": "1.3.0rc20"}),
    ),
    "gpus": request(
        (
            "hardware.gpu",
            {
                "sku": "h200_sxm",
                "prefillSku": "h100_sxm",
                "decodeSku": "b200_sxm",
                "budget": 65536,
                "minBudget": 65536,
                "budgetBySku": {"h100_sxm": 65536},
                "perNode": 8,
                "nodeSelector": {"h100_sxm": {"nvidia.com/gpu.product": "NVIDIA-H100-SXM5-80GB"}},
            },
        )
    ),
    "rate": request((STATIC, LOAD | {"requestRate": 0.5, "arrival": "constant"})),
    "whole rate": request((STATIC, LOAD | {"requestRate": 3})),
    "ratio": request((STATIC, LOAD | {"kvLoadRatio": 1})),
    "ratio range": request(
        (STATIC, LOAD | {"kvLoadRatioRange": {"min": 0.1, "max": 1}}), ("objective", {"mode": "pareto"})
    ),
    "saturated": request((STATIC, LOAD | {"saturated": True}), ("search", {"fidelity": "static"})),
    "explicit poisson": request((f"{STATIC}.arrival", "poisson")),
    "one warm-up less than requests": request((f"{STATIC}.requests", 10), (f"{STATIC}.warmupRequests", 9)),
    "no shared prefix": request((f"{STATIC}.sharedPrefixRatio", 0)),
    "shared prefix": request(
        (f"{STATIC}.sharedPrefixRatio", 1),
        (f"{STATIC}.prefixGroups", 4),
        (f"{STATIC}.turnsPerSession", 3),
        (f"{STATIC}.interTurnDelayMs", 2500.5),
        (f"{STATIC}.turnHistory", "accumulate"),
        (f"{STATIC}.lengthSpread", 1),
    ),
    "trace": request(("workload", {"trace": PVC | {"format": "mooncake"}, "maxSequenceLength": 131072})),
    "trace under a cap": request(
        ("workload", {"trace": PVC | {"replay": {"concurrency": 8, "arrivalSpeedupRatio": 1}}})
    ),
    "faster trace": request(("workload", {"trace": PVC | {"replay": {"arrivalSpeedupRatio": 2.5}}})),
    "trace uri": request(
        ("workload", {"trace": {"source": {"uri": {"url": "s3://bucket/a.jsonl", "secret": "s3"}}}}),
        ("search", {"fidelity": "replay"}),
    ),
    "goodput": request(("objective", {"mode": "optimize", "metric": "goodput", "sla": TTFT_ITL | {"strict": False}})),
    "end to end": request(("objective", {"mode": "optimize", "metric": "minGpus", "sla": {"e2eMs": 9000}})),
    "cost": request(
        ("objective", {"mode": "pareto", "metrics": ["throughputPerCost", "ttft"], "gpuHourCost": {"h200_sxm": 3.5}})
    ),
    "agg only": request(("search", {"topologies": ["agg"]})),
    "encoder": request(
        (f"{STATIC}.images", IMAGES), ("search", {"encoder": "Both"}), ("hardware.gpu.encoderSku", "l40s")
    ),
    "planner": request(
        ("search", {"encoder": "Inline", "planner": {"mode": "sla", "decodeMaxWorkers": 4, "startupSeconds": 30}})
    ),
    "routers": request(
        (
            "search",
            {
                "router": [
                    {"mode": "kv", "overlapCredit": 0, "temperature": 0},
                    {"mode": "kv", "prefillLoadModel": {"type": "performanceData", "sku": "h200_sxm"}},
                    {},
                ]
            },
        )
    ),
    "budget": request(
        (
            "search",
            {
                "budget": {
                    "maxRounds": 1,
                    "candidatesPerRound": 8,
                    "parallelEvaluations": 2,
                    "maxEvaluationDuration": "1h30m",
                    "maxDuration": "0.5ms",
                },
                "parameters": {"sweep": {"seed": 7}},
            },
        )
    ),
    "rest": request(
        ("image", "example.org/sweeper:1"),
        ("runtime.versionOverride", "1.4.2"),
        ("recommendation", {"maxCandidates": 50}),
        ("rerun", {"reason": "again"}),
        ("suspend", True),
        ("overrides", {"dgd": {"spec": {"env": []}}, "profilingJob": {"ttlSecondsAfterFinished": 60}}),
    ),
}
