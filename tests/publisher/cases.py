"""Deployments whose YAML is kept in ``golden/``: every backend, version, topology and kind of shape."""

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.run import RunSpec

from tests.publisher.samples import evaluated, role, spec

TOKEN = {"tokenSecret": {"name": "hf-token-secret"}}
CACHE = {"cache": {"pvc": {"name": "models"}}}

CASES: dict[str, tuple[EvaluatedCandidate, RunSpec]] = {
    "vllm_agg_tp2": (evaluated(role("agg", {"tp": 2}, workers=3)), spec()),
    "vllm_disagg": (
        evaluated(role("prefill", workers=2, maxNumSeqs=1), role("decode", {"tp": 2}, workers=4)),
        spec(model=CACHE | TOKEN),
    ),
    "vllm_agg_dep16_two_nodes": (
        evaluated(role("agg", {"attentionDp": 16, "moeEp": 16}, kv="fp8")),
        spec(model={"cache": {"pvc": {"name": "models", "modelPath": "qwen/fp8"}}}),
    ),
    "vllm_disagg_tp16_two_nodes": (
        evaluated(role("prefill", {"tp": 8}), role("decode", {"tp": 16}, enableChunkedPrefill=True)),
        spec(model={"revision": "main"}),
    ),
    "sglang_0516_agg_tp4": (
        evaluated(role("agg", {"tp": 4}, backend="sglang", version="0.5.16", blockSize=1, numGpuBlocks=500_000)),
        spec("sglang", "0.5.16"),
    ),
    "sglang_0516_disagg_tep_dep": (
        evaluated(
            role("prefill", {"tp": 4, "moeEp": 4}, backend="sglang", version="0.5.16", workers=2),
            role(
                "decode",
                {"attentionDp": 8, "moeEp": 8},
                backend="sglang",
                version="0.5.16",
                kv="fp8",
                enablePrefixCaching=True,
            ),
        ),
        spec("sglang", "0.5.16", model=CACHE | {"remoteCode": "AlwaysTrust"}),
    ),
    "sglang_0514_disagg_dep16_two_nodes": (
        evaluated(
            role("prefill", {"tp": 8, "moeTp": 8}, backend="sglang", version="0.5.14", enableChunkedPrefill=False),
            role("decode", {"attentionDp": 16, "moeEp": 16}, backend="sglang", version="0.5.14"),
        ),
        spec("sglang", "0.5.14"),
    ),
    "vllm_agg_mirror_without_version": (
        evaluated(role("agg", workers=2)),
        spec(
            runtime={
                "image": "registry.local/mirror/vllm-runtime:stable",
                "versionOverride": "1.4.1",
                "performanceDataVersion": {"vllm": "0.24.0"},
            }
        ),
    ),
    "vllm_disagg_two_skus": (
        evaluated(role("prefill", sku="h100_sxm"), role("decode", {"tp": 2}, workers=2)),
        spec(gpu={"prefillSku": "h100_sxm", "nodeSelector": {"h200_sxm": {"pool": "on"}}}),
    ),
}
