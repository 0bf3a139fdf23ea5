"""How many nodes and GPUs per pod a worker takes, and where its pods may run."""

from dataclasses import dataclass

from dgdr_api.replay_spec import Role
from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.deployment import NodePool


@dataclass(frozen=True)
class Placement:
    """The pods of one worker."""

    node_count: int | None
    """Absent for a worker of one pod; at least 2 otherwise."""
    gpus_per_pod: int


def placement(role: Role, nodes: NodePool) -> Placement:
    """The pods of a worker: several only when it is wider than a node, then evenly split.

    Raises:
        NotRenderableError: GPUs that no even split over whole nodes holds, data-parallel ranks that do not divide
            over the nodes (vLLM starts equal numbers on each), or nodes that need an object beside the deployment.
    """
    field, gpus = f"candidate.roles.{role.kind}.shape", role.shape.gpus
    if gpus <= nodes.gpus_per_node:
        return Placement(node_count=None, gpus_per_pod=gpus)
    node_count = -(-gpus // nodes.gpus_per_node)
    if gpus % node_count:
        raise NotRenderableError(
            field,
            role.shape.label,
            f"{gpus} GPUs do not split evenly over {node_count} nodes of {nodes.gpus_per_node}",
        )
    if nodes.needs_compute_domain:
        raise NotRenderableError(
            field,
            role.shape.label,
            f"a worker over {node_count} nodes of {role.sku} needs a ComputeDomain, an object beside the deployment",
        )
    if role.backend == "vllm" and role.shape.attention_dp > 1 and role.shape.attention_dp % node_count:
        raise NotRenderableError(
            field,
            role.shape.label,
            f"{role.shape.attention_dp} data-parallel ranks do not divide over {node_count} nodes, and the operator "
            "starts as many on each",
        )
    return Placement(node_count=node_count, gpus_per_pod=gpus // node_count)
