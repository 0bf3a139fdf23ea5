"""Reads the arguments of ``dynamo.sglang`` over SGLang 0.5.14 and 0.5.16, written after their argument definitions.

The two releases define the options below alike. SGLang divides running requests and the prefill chunk by the number
of data-parallel ranks, and its tensor parallel size is the whole width of a worker.
"""

from collections.abc import Sequence

from dgdr_publisher.verify.arguments import ArgumentsError, CommandLine
from dgdr_publisher.verify.reading import EngineReading

MODULE = "dynamo.sglang"
_NO_CHUNKS = -1


def read_engine(arguments: Sequence[str]) -> EngineReading:
    """What the engine would do with these arguments.

    Raises:
        ArgumentsError: a command line that the worker refuses, or that leaves an evaluated value to a default.
    """
    options = _command_line().read(arguments)
    ranks = options.data_parallel_size
    mode = {"null": "agg"}.get(options.disaggregation_mode, options.disaggregation_mode)
    if options.enable_dp_attention != (ranks > 1):
        raise ArgumentsError(f"{MODULE}: {ranks} data-parallel ranks and dp-attention {options.enable_dp_attention}")
    moves = mode != "agg"
    if moves != (options.host is not None) or moves != (options.disaggregation_bootstrap_port is not None):
        raise ArgumentsError(
            f"{MODULE}: a {mode} worker with host {options.host} and bootstrap port "
            f"{options.disaggregation_bootstrap_port}"
        )
    chunked = options.chunked_prefill_size != _NO_CHUNKS
    if chunked and _share(options.chunked_prefill_size, ranks, "--chunked-prefill-size") != options.max_prefill_tokens:
        raise ArgumentsError(
            f"{MODULE}: a pass takes {options.chunked_prefill_size} / {ranks} tokens by --chunked-prefill-size, "
            f"{options.max_prefill_tokens} by --max-prefill-tokens"
        )
    return EngineReading(
        model=options.model_path,
        served_name=options.served_model_name,
        revision=options.revision,
        trust_remote_code=options.trust_remote_code,
        mode=mode,
        transfer=options.disaggregation_transfer_backend,
        bootstrap_port=options.disaggregation_bootstrap_port,
        tp=_share(options.tensor_parallel_size, ranks, "--tensor-parallel-size"),
        pp=options.pipeline_parallel_size,
        attention_dp=ranks,
        moe_ep=options.expert_parallel_size,
        max_num_seqs=_share(options.max_running_requests, ranks, "--max-running-requests"),
        max_num_batched_tokens=options.max_prefill_tokens,
        block_size=options.page_size,
        max_sequence_length=options.context_length,
        enable_prefix_caching=_caches_prefixes(
            mode, off=options.disable_radix_cache, on_decode=options.disaggregation_decode_enable_radix_cache
        ),
        enable_chunked_prefill=chunked,
        memory_fraction=options.mem_fraction_static,
        kv_format={"fp8_e4m3": "fp8"}.get(options.kv_cache_dtype, options.kv_cache_dtype),
    )


def _command_line() -> CommandLine:
    line = CommandLine(MODULE)
    line.value("--model-path", "--model", required=True)
    line.value("--served-model-name", required=True)
    line.value("--revision")
    line.switch("--trust-remote-code")
    line.value("--disaggregation-mode", choices=["null", "prefill", "decode"], required=True)
    line.value("--disaggregation-transfer-backend", choices=["nixl"])
    line.value("--disaggregation-bootstrap-port", kind=int)
    line.value("--host", choices=["0.0.0.0"])  # noqa: S104 - what a disaggregated worker must listen on
    for names in (
        ("--tensor-parallel-size", "--tp-size"),
        ("--pipeline-parallel-size", "--pp-size"),
        ("--data-parallel-size", "--dp-size"),
        ("--expert-parallel-size", "--ep-size", "--ep"),
    ):
        line.value(*names, kind=int, required=True)
    line.switch("--enable-dp-attention")
    for limit in (
        "--max-running-requests",
        "--max-prefill-tokens",
        "--chunked-prefill-size",
        "--context-length",
        "--page-size",
    ):
        line.value(limit, kind=int, required=True)
    line.value("--mem-fraction-static", kind=float, required=True)
    line.value("--kv-cache-dtype", choices=["bfloat16", "fp8_e4m3"], required=True)
    line.switch("--disable-radix-cache")
    line.switch("--disaggregation-decode-enable-radix-cache")
    return line


def _share(total: int, ranks: int, option: str) -> int:
    if ranks < 1 or total % ranks:
        raise ArgumentsError(f"{MODULE}: {option} {total} does not divide over {ranks} data-parallel ranks")
    return total // ranks


def _caches_prefixes(mode: str, *, off: bool, on_decode: bool) -> bool:
    """Caching is on unless switched off, except on decode workers, where it must be switched on."""
    if on_decode and (off or mode != "decode"):
        raise ArgumentsError(
            f"{MODULE}: --disaggregation-decode-enable-radix-cache on a {mode} worker"
            + (" together with --disable-radix-cache" if off else "")
        )
    return on_decode if mode == "decode" else not off
