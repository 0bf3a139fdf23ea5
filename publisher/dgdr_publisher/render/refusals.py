"""What this renderer does not express, refused by name before anything is rendered.

Each check looks at one thing and either returns or raises; nothing is changed to make a candidate fit.
"""

from collections.abc import Sequence

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.expressible import (
    encoder_problems,
    knob_problems,
    pair_problem,
    topology_problem,
    unrendered_encoder,
    unrendered_shape,
)
from dgdr_api.replay_spec import Role

from dgdr_publisher.errors import NotRenderableError

KV_FORMATS = frozenset({"bfloat16", "fp8"})


def check_renderable(evaluated: EvaluatedCandidate) -> None:
    """Raise unless every evaluated choice can be expressed.

    Raises:
        NotRenderableError: naming the first field and value that cannot.
    """
    candidate, spec = evaluated.candidate, evaluated.replay_spec
    problem = topology_problem(candidate.backend, frozenset(role.kind for role in candidate.roles))
    if problem is not None:
        raise NotRenderableError("candidate.topology", candidate.topology, problem)
    if candidate.encoder != "Inline":
        problems = [unrendered_encoder(candidate.encoder, images=True) or "", *_encode_problems(candidate.roles)]
        raise NotRenderableError("candidate.encoder", candidate.encoder, "; ".join(problems))
    if candidate.planner is not None:
        raise NotRenderableError("candidate.planner", candidate.planner.mode, "planners are not rendered yet")
    if candidate.router.mode != "roundRobin":
        raise NotRenderableError("candidate.router.mode", candidate.router.mode, "only roundRobin is rendered yet")
    if spec.workload.trace is not None:
        raise NotRenderableError("replaySpec.workload.trace", spec.workload.trace.path, "traces are not supported yet")
    images = None if spec.workload.static is None else spec.workload.static.images
    problem = unrendered_encoder(candidate.encoder, images=images is not None)
    if images is not None and problem is not None:
        shown = f"{images.count} of {images.height} x {images.width}"
        raise NotRenderableError("replaySpec.workload.static.images", shown, problem)
    if spec.host_overhead_ms:
        raise NotRenderableError(
            "replaySpec.hostOverheadMs", spec.host_overhead_ms, "an overhead that no deployment setting causes: 0"
        )
    for role in candidate.roles:
        _check_role(role)
    _check_pair(candidate.roles)


def _check_pair(roles: Sequence[Role]) -> None:
    shapes = {role.kind: role.shape for role in roles}
    if not {"prefill", "decode"} <= shapes.keys():
        return
    last = roles[-1]
    problem = pair_problem(last.backend, last.engine_version, shapes["prefill"], shapes["decode"])
    if problem is not None:
        raise NotRenderableError("candidate.roles.decode.shape.tp", shapes["decode"].tp, problem)


def _encode_problems(roles: Sequence[Role]) -> list[str]:
    """Why the encode workers could not be started as they were evaluated, templates apart."""
    return [
        problem
        for role in roles
        if role.kind == "encode"
        for problem in encoder_problems(role.backend, tp=role.shape.tp, batch_size=role.engine.max_num_seqs)
    ]


def _check_role(role: Role) -> None:
    where, shape, engine = f"candidate.roles.{role.kind}", role.shape, role.engine
    if role.nextn:
        raise NotRenderableError(f"{where}.nextn", role.nextn, "multi-token prediction is not rendered yet: 0")
    if shape.cp > 1:
        problem = unrendered_shape(shape, sku=role.sku, gpus_per_node=shape.gpus)
        raise NotRenderableError(f"{where}.shape.cp", shape.cp, problem or "")
    if role.quantization.kv not in KV_FORMATS:
        known = ", ".join(sorted(KV_FORMATS))
        raise NotRenderableError(f"{where}.quantization.kv", role.quantization.kv, f"KV formats with a flag: {known}")
    if engine.preemption != "newest":
        raise NotRenderableError(
            f"{where}.engine.preemption", engine.preemption, f"{role.backend} has no such option: newest"
        )
    room = engine.num_gpu_blocks * engine.block_size
    if engine.max_sequence_length > room:
        raise NotRenderableError(
            f"{where}.engine.maxSequenceLength",
            engine.max_sequence_length,
            f"the KV cache of one rank holds {room} tokens ({engine.num_gpu_blocks} blocks of {engine.block_size})",
        )
    _check_limits(role, where)


def _check_limits(role: Role, where: str) -> None:
    """Combinations that the engines refuse at start (vLLM ``verify_max_model_len``, SGLang ``check_server_args``)."""
    engine = role.engine
    tokens = f"{where}.engine.maxNumBatchedTokens"
    problems = knob_problems(
        role.backend,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        block_size=engine.block_size,
        max_num_seqs=engine.max_num_seqs,
        shape=role.shape,
    )
    if problems:
        raise NotRenderableError(f"{where}.engine", engine.max_num_batched_tokens, "; ".join(problems))
    if role.backend == "vllm":
        if engine.max_num_batched_tokens < engine.max_num_seqs:
            raise NotRenderableError(
                tokens,
                engine.max_num_batched_tokens,
                f"vLLM wants at least as many tokens a pass as sequences ({engine.max_num_seqs})",
            )
        if not engine.enable_chunked_prefill and engine.max_num_batched_tokens < engine.max_sequence_length:
            raise NotRenderableError(
                tokens,
                engine.max_num_batched_tokens,
                f"without chunked prefill vLLM wants the longest sequence ({engine.max_sequence_length}) in one pass",
            )
    if (
        role.backend == "sglang"
        and role.kind != "decode"
        and engine.enable_chunked_prefill
        and engine.max_num_batched_tokens % engine.block_size
    ):
        raise NotRenderableError(
            tokens,
            engine.max_num_batched_tokens,
            f"SGLang wants the prefill chunk to be whole pages of {engine.block_size} tokens",
        )
