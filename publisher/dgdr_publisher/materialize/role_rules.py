"""Where the evaluated values of a role land: one rule a value, for all backends or for each."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from dgdr_api.terms import Backend
from dgdr_api.versions import engine_version, runtime_version

from dgdr_publisher.materialize.site import Landing, NotThereError, Reason, Site

Rule = Callable[[Any, Site], list[Landing]]
_GPUS = "podTemplate/spec/containers/0/resources/limits/nvidia.com~1gpu"
_CHECKPOINT = Reason("follows from the checkpoint, whose quantization the engine reads itself")


def reason(text: str) -> Rule:
    """A value that needs no place."""
    return lambda _value, _site: [Reason(text)]


def only(expected: object, text: str) -> Rule:
    """A value that needs no place as long as it is the one the engine has anyway."""

    def rule(value: Any, _site: Site) -> list[Landing]:  # noqa: ANN401 - any leaf of the document
        if value != expected:
            raise NotThereError(f"only {expected} has a form")
        return [Reason(text)]

    return rule


def option(flag: str, text: Callable[[Any, Site], str] = lambda value, _site: str(value)) -> Rule:
    """A value that an option carries, in the engine's own terms."""
    return lambda value, site: [site.option(flag, text(value, site))]


def _per_rank(value: Any, site: Site) -> str:  # noqa: ANN401 - a number of the document
    return str(value * site.role.shape.attention_dp)


def _gpus(value: int, site: Site) -> list[Landing]:
    multinode = site.component.get("multinode")
    nodes = 1 if multinode is None else multinode["nodeCount"]
    landings: list[Landing] = [site.field(_GPUS, str(value // nodes))]
    if value % nodes:
        raise NotThereError(f"{value} GPUs do not divide over {nodes} nodes")
    if nodes > 1:
        landings.append(site.at("multinode/nodeCount"))
    return landings


def _image(value: str, site: Site) -> list[Landing]:
    image = site.component["podTemplate"]["spec"]["containers"][0]["image"]
    override = site.component.get("runtimeVersionOverride")
    runtime = runtime_version(image, override)
    carried = None if runtime is None else engine_version(runtime, site.role.backend)
    if carried != value:
        raise NotThereError(f"{image} carries {site.role.backend} {carried}")
    return [site.at("podTemplate/spec/containers/0/image" if override is None else "runtimeVersionOverride")]


def _kind(value: str, site: Site) -> list[Landing]:
    mode = {("sglang", "agg"): "null"}.get((site.role.backend, value), value)
    landings: list[Landing] = [
        site.field("type", {"agg": "worker"}.get(value, value)),
        site.option("--disaggregation-mode", mode),
    ]
    if value != "agg":
        landings.append(_TRANSFER[site.role.backend](site))
    return landings


_TRANSFER: Mapping[Backend, Callable[[Site], Landing]] = {
    "vllm": lambda site: site.option("--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'),
    "sglang": lambda site: site.option("--disaggregation-transfer-backend", "nixl"),
}


def _selector(value: str, site: Site) -> list[Landing]:
    if not site.component["podTemplate"]["spec"].get("nodeSelector"):
        raise NotThereError(f"no node selector finds nodes of {value}")
    return [site.at("podTemplate/spec/nodeSelector")]


def _on_or_off(value: bool, site: Site, *, name: str) -> list[Landing]:  # noqa: FBT001 - the evaluated value
    on, off = f"--{name}", f"--no-{name}"
    site.absent(off if value else on, "")
    return [site.switch(on if value else off)]


def _vllm_experts(value: int, site: Site) -> list[Landing]:
    if value > 1:
        return [site.switch("--enable-expert-parallel")]
    return [site.absent("--enable-expert-parallel", "--enable-expert-parallel is absent: experts are not spread")]


def _sglang_ranks(value: int, site: Site) -> list[Landing]:
    ranks = site.option("--data-parallel-size", str(value))
    if value > 1:
        return [ranks, site.switch("--enable-dp-attention")]
    site.absent("--enable-dp-attention", "")
    return [ranks]


def _sglang_prefix_caching(value: bool, site: Site) -> list[Landing]:  # noqa: FBT001 - the evaluated value
    off, on = "--disable-radix-cache", "--disaggregation-decode-enable-radix-cache"
    if not value:
        site.absent(on, "")
        return [site.switch(off)]
    site.absent(off, "")
    if site.role.kind == "decode":
        return [site.switch(on)]
    return [site.absent(on, f"{off} is absent, and SGLang has no option that says on: it caches unless told not to")]


def _sglang_chunks(value: bool, site: Site) -> list[Landing]:  # noqa: FBT001 - the evaluated value
    chunk = _per_rank(site.role.engine.max_num_batched_tokens, site) if value else "-1"
    return [site.option("--chunked-prefill-size", chunk)]


COMMON: Mapping[str, Rule] = {
    "kind": _kind,
    "workers": lambda value, site: [site.field("replicas", value)],
    "gpusPerWorker": _gpus,
    "sku": _selector,
    "engineVersion": _image,
    "dataVersion": reason("identity of the performance data; condition VersionBound compares it with the engine"),
    "nextn": only(0, "0: no speculative decoding is asked for"),
    "shape.pp": option("--pipeline-parallel-size"),
    "shape.cp": only(1, "1: no context parallelism is asked for"),
    "shape.moeTp": reason("follows from the other sizes: tp * attentionDp / moeEp, or 1 for a dense model"),
    "quantization.gemm": lambda _value, _site: [_CHECKPOINT],
    "quantization.moe": lambda _value, _site: [_CHECKPOINT],
    "quantization.attention": reason(
        "chosen by the engine's attention backend; no option, a property of the data read"
    ),
    "quantization.communication": reason("collectives run in the activation format; no option"),
    "engine.numGpuBlocks": reason(
        "measured by the engine at start from the memory fraction; the estimate is in evaluation.memory"
    ),
}
VLLM: Mapping[str, Rule] = {
    "shape.tp": option("--tensor-parallel-size"),
    "shape.attentionDp": option("--data-parallel-size"),
    "shape.moeEp": _vllm_experts,
    "quantization.kv": option("--kv-cache-dtype"),
    "memoryFraction": option("--gpu-memory-utilization", lambda value, _site: json.dumps(value)),
    "engine.maxNumSeqs": option("--max-num-seqs"),
    "engine.maxNumBatchedTokens": option("--max-num-batched-tokens"),
    "engine.blockSize": option("--block-size"),
    "engine.maxSequenceLength": option("--max-model-len"),
    "engine.enablePrefixCaching": lambda value, site: _on_or_off(value, site, name="enable-prefix-caching"),
    "engine.enableChunkedPrefill": lambda value, site: _on_or_off(value, site, name="enable-chunked-prefill"),
    "engine.preemption": only("newest", "vLLM's first-come scheduler preempts the newest running request; no option"),
}
SGLANG: Mapping[str, Rule] = {
    "shape.tp": option("--tensor-parallel-size", _per_rank),
    "shape.attentionDp": _sglang_ranks,
    "shape.moeEp": option("--expert-parallel-size"),
    "quantization.kv": option("--kv-cache-dtype", lambda value, _site: {"fp8": "fp8_e4m3"}.get(value, value)),
    "memoryFraction": option("--mem-fraction-static", lambda value, _site: json.dumps(value)),
    "engine.maxNumSeqs": option("--max-running-requests", _per_rank),
    "engine.maxNumBatchedTokens": option("--max-prefill-tokens"),
    "engine.blockSize": option("--page-size"),
    "engine.maxSequenceLength": option("--context-length"),
    "engine.enablePrefixCaching": _sglang_prefix_caching,
    "engine.enableChunkedPrefill": _sglang_chunks,
    "engine.preemption": only("newest", "SGLang retracts by its own policy; no option changes it"),
}
ROLE_RULES: Mapping[Backend, Mapping[str, Rule]] = {"vllm": {**COMMON, **VLLM}, "sglang": {**COMMON, **SGLANG}}
TIMING = Reason("source of the pass times of the evaluation; no deployment field")
