"""Random small workloads on random engine limits, in the words of Dynamo's replay."""

from typing import Any

from hypothesis import strategies as st


@st.composite
def cases(draw: st.DrawFn, backend: str, topology: str, router: str = "round_robin") -> dict[str, Any]:
    """A case that every worker can hold: the peer aborts where one cannot."""
    block = draw(st.sampled_from([1, 4, 16] if backend == "sglang" else [4, 16, 64]))
    unit = block * draw(st.sampled_from([1, 2, 4]))
    blocks = draw(st.integers(4, 60))
    kinds = ["aggregated"] if topology == "agg" else ["prefill", "decode"]
    arguments = {kind: draw(_engine(backend, block, blocks, kind)) for kind in kinds}
    budget = min(one["max_num_batched_tokens"] for kind, one in arguments.items() if kind != "decode")
    whole_prompts = not all(one["enable_chunked_prefill"] for one in arguments.values())
    capacity = min(one["num_gpu_blocks"] for one in arguments.values()) * block
    if backend == "sglang":
        capacity -= 2 * block  # its estimate must leave room, or the peer waits for ever
    longest = min(capacity - 2, 40 * block)
    if whole_prompts:
        longest = min(longest, budget)
    clock, trace = 0, []
    for _ in range(draw(st.integers(1, 14))):
        clock += draw(st.sampled_from([0, 0, 1, 2, 5, 11, 40]))
        trace.append(draw(_request(clock, longest, capacity, unit)))
    options: dict[str, Any] = {}
    if topology == "agg":
        options["extra_engine_args"] = arguments["aggregated"]
        options["num_workers"] = draw(st.integers(1, 3)) if router == "round_robin" else 1
    else:
        options["prefill_engine_args"], options["decode_engine_args"] = arguments["prefill"], arguments["decode"]
        options["num_prefill_workers"] = draw(st.integers(1, 2)) if router == "round_robin" else 1
        options["num_decode_workers"] = draw(st.integers(1, 3)) if router == "round_robin" else 1
        link = draw(_link())
        for one in arguments.values():
            one.update(link)
    concurrency = draw(st.sampled_from([None, None, 1, 2, 5]))
    if concurrency:
        options["replay_concurrency"] = concurrency
    if router != "round_robin":
        options["router_mode"] = router
    return {"trace_block_size": unit, "trace": trace, "options": options}


@st.composite
def _engine(draw: st.DrawFn, backend: str, block: int, blocks: int, kind: str) -> dict[str, Any]:
    chunk = draw(st.sampled_from([16, 24, 64, 100, 512, 8192]))
    chunk = -(-chunk // block) * block if backend == "sglang" else max(chunk, block)
    engine = {
        "backend": backend,
        "worker_type": kind,
        "num_gpu_blocks": blocks,
        "block_size": block,
        "max_num_seqs": draw(st.integers(1, 8)),
        "max_num_batched_tokens": chunk,
        "enable_prefix_caching": draw(st.booleans()),
        "enable_chunked_prefill": backend == "sglang" or draw(st.sampled_from([True, True, False])),
        "preemption_mode": draw(st.sampled_from(["lifo", "lifo", "fifo"])),
        "timing_model": draw(
            st.sampled_from(
                [
                    {"type": "fixed", "prefill_ms": 10.0, "decode_ms": 1.0},
                    {"type": "fixed", "prefill_ms": 7.0, "decode_ms": 3.0},
                    {"type": "polynomial"},
                ]
            )
        ),
    }
    if backend == "sglang":
        engine["sglang"] = {"chunked_prefill_size": chunk}
    return engine


@st.composite
def _link(draw: st.DrawFn) -> dict[str, Any]:
    free = draw(st.booleans())
    return {
        "kv_transfer_bandwidth": None if free else draw(st.sampled_from([1.0, 2.0])),
        "kv_transfer_bytes_per_token": None if free else draw(st.sampled_from([500_000, 1_000_000])),
        "kv_transfer_timing_mode": draw(st.sampled_from(["full_prompt", "destination_missing"])),
    }


@st.composite
def _request(draw: st.DrawFn, clock: int, longest: int, capacity: int, unit: int) -> dict[str, Any]:
    isl = draw(st.integers(1, max(1, longest)))
    osl = draw(st.integers(1, max(1, min(60, capacity - isl))))
    units = -(-isl // unit)
    family = draw(st.integers(0, 2))
    shared = draw(st.integers(0, units))
    own = draw(st.integers(0, 999))
    ids = [family * 1000 + at if at < shared else 10_000 + own * 1000 + at for at in range(units)]
    return {"timestamp": clock, "input_length": isl, "output_length": osl, "hash_ids": ids}
