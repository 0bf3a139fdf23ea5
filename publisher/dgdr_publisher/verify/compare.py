"""Compares what a deployment says with what was evaluated."""

from collections.abc import Iterator, Mapping
from typing import Any

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.replay_spec import ReplayRole
from dgdr_publisher.verify.names import check_names
from dgdr_publisher.verify.read_back import UnreadableError, read_back
from dgdr_publisher.verify.reading import DeploymentReading, Difference, WorkerReading
from dgdr_publisher.verify.surroundings import Surroundings, check_image, check_nodes

_ROUTERS = {"roundRobin": "round-robin", "kv": "kv"}


def verify_dgd(
    dgd: Mapping[str, Any], evaluated: EvaluatedCandidate, surroundings: Surroundings | None = None
) -> list[Difference]:
    """All differences between a deployment and the candidate that it should be; empty when there are none.

    Args:
        dgd: a v1beta1 DynamoGraphDeployment.
        evaluated: the candidate with the ReplaySpec that was scored.
        surroundings: what the request says about images, nodes and the model; without it only what the candidate
            and the catalogs determine is checked.
    """
    try:
        reading = read_back(dgd)
    except UnreadableError as error:
        return [error.difference]
    return compare(reading, evaluated, surroundings or Surroundings())


def compare(
    reading: DeploymentReading, evaluated: EvaluatedCandidate, surroundings: Surroundings
) -> list[Difference]:
    """All differences between what was read back and what was evaluated."""
    candidate, spec = evaluated.candidate, evaluated.replay_spec
    found = list(check_names(reading))
    found += _unequal("spec.backendFramework", candidate.backend, reading.backend)
    found += _unequal("spec.components", candidate.topology, reading.topology)
    found += _unequal("gpus", candidate.used_gpus, reading.total_gpus)
    found += _unequal("Frontend.replicas", 1, reading.frontend.replicas)
    found += _unequal("Frontend.args.--router-mode", _ROUTERS[candidate.router.mode], reading.frontend.router_mode)
    if candidate.encoder != "Inline" or candidate.planner is not None:
        found.append(Difference("spec.components", "an encoder or planner", "none"))
    kinds = {worker.kind: worker for worker in reading.workers}
    for role in spec.roles:
        worker = kinds.get(role.kind)
        if worker is None:
            found.append(Difference("spec.components", f"a component of role {role.kind}", ", ".join(kinds) or "none"))
            continue
        found += _role(role, worker)
        found += check_nodes(role, worker, surroundings)
        found += check_image(role.backend, role.engine_version, worker.component, worker.image, surroundings)
    first = spec.roles[0]
    found += check_image(first.backend, first.engine_version, "Frontend", reading.frontend.image, surroundings)
    found += _model(reading, candidate.model, surroundings)
    return found


def _role(role: ReplayRole, worker: WorkerReading) -> Iterator[Difference]:
    engine, shape = worker.engine, role.shape
    pairs: tuple[tuple[str, object, object], ...] = (
        ("replicas", role.workers, worker.replicas),
        ("nodes times GPUs", role.gpus_per_worker, worker.node_count * worker.gpus_per_pod),
        ("disaggregation mode", role.kind, engine.mode),
        ("KV transfer", None if role.kind == "agg" else "nixl", engine.transfer),
        ("tp", shape.tp, engine.tp),
        ("pp", shape.pp, engine.pp),
        ("attentionDp", shape.attention_dp, engine.attention_dp),
        ("moeEp", shape.moe_ep, engine.moe_ep),
        ("GPUs of the parallel sizes", role.gpus_per_worker, engine.tp * engine.pp * engine.attention_dp),
        ("maxNumSeqs", role.engine.max_num_seqs, engine.max_num_seqs),
        ("maxNumBatchedTokens", role.engine.max_num_batched_tokens, engine.max_num_batched_tokens),
        ("blockSize", role.engine.block_size, engine.block_size),
        ("maxSequenceLength", role.engine.max_sequence_length, engine.max_sequence_length),
        ("enablePrefixCaching", role.engine.enable_prefix_caching, engine.enable_prefix_caching),
        ("enableChunkedPrefill", role.engine.enable_chunked_prefill, engine.enable_chunked_prefill),
        ("memoryFraction", role.memory_fraction, engine.memory_fraction),
        ("KV format", role.quantization.kv, engine.kv_format),
    )
    for name, expected, actual in pairs:
        yield from _unequal(f"{worker.component}.{name}", expected, actual)
    if worker.node_count > 1:
        yield from _nodes_fit(role, worker)


def _nodes_fit(role: ReplayRole, worker: WorkerReading) -> Iterator[Difference]:
    """The operator adds multinode flags only for shapes that it recognises as wider than a pod."""
    engine, where = worker.engine, f"{worker.component}.multinode.nodeCount"
    if role.backend != "vllm":
        return
    if engine.tp * engine.pp > worker.gpus_per_pod:
        if engine.attention_dp > 1:
            yield Difference(where, "data-parallel ranks that fit a pod", f"{engine.tp * engine.pp} GPUs a rank")
    elif engine.attention_dp % worker.node_count:
        yield Difference(where, f"a divisor of {engine.attention_dp} data-parallel ranks", str(worker.node_count))


def _model(reading: DeploymentReading, model: str, surroundings: Surroundings) -> Iterator[Difference]:
    """One model under one name everywhere; a folder must lie on a mount of every component that reads it."""
    frontend = reading.frontend
    paths = {worker.engine.model for worker in reading.workers}
    if len(paths) > 1:
        yield Difference("args.--model", "one model for all workers", ", ".join(sorted(paths)))
    for worker in reading.workers:
        yield from _unequal(f"{worker.component}.served model name", model, worker.engine.served_name)
        yield from surroundings.check_model(worker.component, worker.engine)
        yield from _unequal(f"{worker.component}.mounts", frontend.mounts, worker.mounts)
        yield from _unequal(f"{worker.component}.env.HF_HOME", frontend.hf_home, worker.hf_home)
        yield from _unequal(
            f"{worker.component}.trust remote code", frontend.trust_remote_code, worker.engine.trust_remote_code
        )
        if not worker.engine.model.startswith("/"):
            yield from _unequal(f"{worker.component}.model", model, worker.engine.model)
            yield from _unequal("Frontend.args.--model-path", None, frontend.model_path)
            yield from _unequal("Frontend.args.--model-name", None, frontend.model_name)
            continue
        yield from _unequal("Frontend.args.--model-path", worker.engine.model, frontend.model_path)
        yield from _unequal("Frontend.args.--model-name", model, frontend.model_name)
        inside = [mount for mount in worker.mounts if f"{worker.engine.model}/".startswith(f"{mount}/")]
        if not inside:
            yield Difference(f"{worker.component}.model", f"a path below {worker.mounts}", worker.engine.model)
    if frontend.hf_home is not None and frontend.hf_home not in frontend.mounts:
        yield Difference("Frontend.env.HF_HOME", f"one of the mounts {frontend.mounts}", frontend.hf_home)
    yield from surroundings.check_cache(frontend)


def _unequal(where: str, expected: object, found: object) -> Iterator[Difference]:
    if expected != found:
        yield Difference(where, str(expected), str(found))
