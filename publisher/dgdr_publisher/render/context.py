"""The context of the templates: everything that a deployment says, computed here and visible there. Pure.

Component names are fixed and short: the operator bounds the sum of deployment and component name, and overrides and
hashes name them.
"""

import json
from collections.abc import Mapping
from typing import Any

from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.expressible import model_revision_problem, sglang_max_running_requests
from dgdr_api.replay_spec import Role
from dgdr_api.terms import RoleKind

from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.deployment import Deployment
from dgdr_publisher.render.model_source import ModelPlaces, model_places
from dgdr_publisher.render.placement import placement
from dgdr_publisher.render.refusals import check_renderable
from dgdr_publisher.render.templates import Template, template_for

FRONTEND = "Frontend"
COMPONENT_NAMES: Mapping[RoleKind, str] = {"agg": "worker", "prefill": "prefill", "decode": "decode"}
COMPONENT_TYPES: Mapping[RoleKind, str] = {"agg": "worker", "prefill": "prefill", "decode": "decode"}


def template_of(evaluated: EvaluatedCandidate, deployment: Deployment) -> Template:
    """The one template of a candidate.

    Raises:
        NotRenderableError: roles of several engine versions, or versions without a template.
    """
    candidate = evaluated.candidate
    versions = {role.engine_version for role in candidate.roles}
    if len(versions) > 1:
        raise NotRenderableError(
            "candidate.roles.engineVersion", sorted(versions), "all roles run the one engine of the runtime image"
        )
    return template_for(
        backend=candidate.backend, engine_version=versions.pop(), runtime_version=deployment.runtime_version
    )


def build_context(
    evaluated: EvaluatedCandidate, deployment: Deployment, template: Template, *, dgd_name: str
) -> dict[str, Any]:
    """The context that the templates read, one entry per component.

    Raises:
        NotRenderableError: a value that cannot be expressed.
    """
    check_renderable(evaluated)
    candidate = evaluated.candidate
    if deployment.model.name != candidate.model:
        raise NotRenderableError("candidate.model", candidate.model, f"the request names {deployment.model.name}")
    places = model_places(deployment.model)
    revision = deployment.model.revision
    problem = model_revision_problem(candidate.backend, revision=revision, local_snapshot=places.local)
    if problem is not None:
        raise NotRenderableError("modelRef.revision", revision, problem)
    shared = {
        "image": deployment.image,
        "runtime_version_override": deployment.runtime_version_override,
        "env": list(places.env),
        "volumes": list(places.volumes),
        "volume_mounts": list(places.volume_mounts),
    }
    frontend = {
        **shared,
        "name": FRONTEND,
        "type": "frontend",
        "replicas": 1,
        "node_count": None,
        "gpus_per_pod": None,
        "shared_memory_size": None,
        "node_selector": None,
        "tolerations": [],
        "command": ["python3", "-m", "dynamo.frontend"],
        "engine": None,
        "frontend": {
            "router_mode": candidate.router.mode,
            "model_name": places.served_name,
            "model_path": places.model if places.local else None,
            "trust_remote_code": places.trust_remote_code,
        },
    }
    workers = [{**shared, **_worker(role, deployment, template, places)} for role in candidate.roles]
    return {"dgd_name": dgd_name, "backend": candidate.backend, "components": [frontend, *workers]}


def _worker(role: Role, deployment: Deployment, template: Template, places: ModelPlaces) -> dict[str, Any]:
    nodes = deployment.nodes[role.kind]
    pods = placement(role, nodes)
    return {
        "name": COMPONENT_NAMES[role.kind],
        "type": COMPONENT_TYPES[role.kind],
        "replicas": role.workers,
        "node_count": pods.node_count,
        "gpus_per_pod": pods.gpus_per_pod,
        "shared_memory_size": nodes.shared_memory_size,
        "node_selector": dict(nodes.node_selector),
        "tolerations": [dict(toleration) for toleration in nodes.tolerations],
        "command": ["python3", "-m", template.facts["module"]],
        "frontend": None,
        "engine": {
            "role": role.kind,
            "model": places.model,
            "served_model_name": places.served_name,
            "revision": places.revision,
            "trust_remote_code": places.trust_remote_code,
            "kv_format": role.quantization.kv,
            "memory_fraction": json.dumps(role.memory_fraction),
            "prefix_caching": role.engine.enable_prefix_caching,
            **_ENGINE_VALUES[role.backend](role),
        },
    }


def _vllm_values(role: Role) -> dict[str, Any]:
    shape, engine = role.shape, role.engine
    return {
        "tensor_parallel_size": shape.tp,
        "pipeline_parallel_size": shape.pp,
        "data_parallel_size": shape.attention_dp,
        "expert_parallel": shape.moe_ep > 1,
        "max_num_seqs": engine.max_num_seqs,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "max_model_len": engine.max_sequence_length,
        "block_size": engine.block_size,
        "chunked_prefill": engine.enable_chunked_prefill,
    }


def _sglang_values(role: Role) -> dict[str, Any]:
    """SGLang's tensor parallel size is the whole width of the worker, which attention data parallelism partitions.

    Running requests and the prefill chunk are engine-wide and divided over the ranks (``server_args.py``,
    ``_handle_data_parallelism``; ``pool_configurator.py``); tokens of a prefill batch are per rank.
    """
    shape, engine = role.shape, role.engine
    ranks = shape.attention_dp
    return {
        "tensor_parallel_size": shape.tp * ranks,
        "pipeline_parallel_size": shape.pp,
        "data_parallel_size": ranks,
        "expert_parallel_size": shape.moe_ep,
        "max_running_requests": sglang_max_running_requests(engine.max_num_seqs, shape),
        "max_prefill_tokens": engine.max_num_batched_tokens,
        "chunked_prefill_size": engine.max_num_batched_tokens * ranks if engine.enable_chunked_prefill else -1,
        "context_length": engine.max_sequence_length,
        "page_size": engine.block_size,
    }


_ENGINE_VALUES = {"vllm": _vllm_values, "sglang": _sglang_values}
