"""Reads the arguments of ``dynamo.vllm`` (1.4) over vLLM 0.26.0, written after their argument definitions."""

import json
from collections.abc import Sequence

from dgdr_publisher.verify.arguments import ArgumentsError, CommandLine
from dgdr_publisher.verify.reading import EngineReading

MODULE = "dynamo.vllm"


def read_engine(arguments: Sequence[str]) -> EngineReading:
    """What the engine would do with these arguments.

    Raises:
        ArgumentsError: a command line that the worker refuses, or that leaves an evaluated value to a default.
    """
    options = _command_line().read(arguments)
    width = options.tensor_parallel_size * options.data_parallel_size
    return EngineReading(
        model=options.model,
        served_name=options.served_model_name,
        revision=options.revision,
        trust_remote_code=options.trust_remote_code,
        mode=options.disaggregation_mode,
        transfer=_transfer(options.kv_transfer_config, options.disaggregation_mode),
        bootstrap_port=None,
        tp=options.tensor_parallel_size,
        pp=options.pipeline_parallel_size,
        attention_dp=options.data_parallel_size,
        moe_ep=width if options.enable_expert_parallel else 1,
        max_num_seqs=options.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens,
        block_size=options.block_size,
        max_sequence_length=options.max_model_len,
        enable_prefix_caching=options.enable_prefix_caching,
        enable_chunked_prefill=options.enable_chunked_prefill,
        memory_fraction=options.gpu_memory_utilization,
        kv_format=options.kv_cache_dtype,
    )


def _command_line() -> CommandLine:
    line = CommandLine(MODULE)
    line.value("--model", required=True)
    line.value("--served-model-name", required=True)
    line.value("--revision")
    line.switch("--trust-remote-code")
    line.value("--disaggregation-mode", choices=["agg", "prefill", "decode"], required=True)
    line.value("--kv-transfer-config")
    for size in ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"):
        line.value(size, kind=int, required=True)
    line.switch("--enable-expert-parallel")
    for limit in ("--max-num-seqs", "--max-num-batched-tokens", "--max-model-len", "--block-size"):
        line.value(limit, kind=int, required=True)
    line.value("--gpu-memory-utilization", kind=float, required=True)
    line.value("--kv-cache-dtype", choices=["bfloat16", "fp8"], required=True)
    line.pair("--enable-prefix-caching")
    line.pair("--enable-chunked-prefill")
    return line


def _transfer(text: str | None, mode: str) -> str | None:
    """How KV moves. A prefill or decode worker without transfer configuration ends at start or moves nothing."""
    if text is None:
        return None
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentsError(f"{MODULE}: --kv-transfer-config is no JSON: {error}") from error
    known = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
    if config != known:
        raise ArgumentsError(f"{MODULE}: --kv-transfer-config of a {mode} worker is {config}, not {known}")
    return "nixl"
