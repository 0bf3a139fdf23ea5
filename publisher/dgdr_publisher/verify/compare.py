"""Compares what a deployment says with what was evaluated."""

from collections.abc import Iterator, Mapping
from typing import Any

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.replay_spec import ReplayRole

from dgdr_publisher.verify.names import check_names
from dgdr_publisher.verify.read_back import UnreadableError, read_back
from dgdr_publisher.verify.reading import DeploymentReading, Difference, WorkerReading
from dgdr_publisher.verify.surroundings import Surroundings, check_cache, check_image, check_model, check_nodes

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


def compare(reading: DeploymentReading, evaluated: EvaluatedCandidate, surroundings: Surroundings) -> list[Difference]:
    """All differences between what was read back and what was evaluated."""
    candidate, spec = evaluated.candidate, evaluated.replay_spec
    found = list(check_names(reading, surroundings.namespace))
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
        found += check_image(role.backend, role.engine_version, worker.component, worker.pod, surroundings)
    ports = {worker.engine.bootstrap_port for worker in reading.workers}
    if len(ports) > 1:
        shown = ", ".join(f"{worker.component} {worker.engine.bootstrap_port}" for worker in reading.workers)
        found.append(Difference("args.--disaggregation-bootstrap-port", "one port for all workers", shown))
    first = spec.roles[0]
    found += check_image(first.backend, first.engine_version, "Frontend", reading.frontend.pod, surroundings)
    found += check_cache("Frontend", reading.frontend.pod, surroundings)
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
        where, engine, pod = worker.component, worker.engine, worker.pod
        yield from check_model(where, engine, surroundings)
        local = engine.model.startswith("/")
        for name, expected, found in (
            (f"{where}.served model name", model, engine.served_name),
            (f"{where}.image", frontend.pod.image, pod.image),
            (f"{where}.volumeMounts", dict(frontend.pod.claims), dict(pod.claims)),
            (f"{where}.env.HF_HOME", frontend.pod.hf_home, pod.hf_home),
            (f"{where}.env.HF_TOKEN", frontend.pod.token_secret, pod.token_secret),
            (f"{where}.trust remote code", frontend.trust_remote_code, engine.trust_remote_code),
            (f"{where}.model", model, model if local else engine.model),
            ("Frontend.args.--model-path", engine.model if local else None, frontend.model_path),
            ("Frontend.args.--model-name", model if local else None, frontend.model_name),
        ):
            yield from _unequal(name, expected, found)
        if local and not any(f"{engine.model}/".startswith(f"{mount}/") for mount in pod.claims):
            yield Difference(f"{where}.model", f"a path below {', '.join(pod.claims) or 'a mount'}", engine.model)
    home = frontend.pod.hf_home
    if home is not None and home not in frontend.pod.claims:
        yield Difference("Frontend.env.HF_HOME", f"one of the mounts {', '.join(frontend.pod.claims)}", home)


def _unequal(where: str, expected: object, found: object) -> Iterator[Difference]:
    if expected != found:
        yield Difference(where, str(expected), str(found))
