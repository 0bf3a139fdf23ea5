"""How many nodes and GPUs per pod a worker takes."""

from dataclasses import dataclass

from dgdr_api.expressible import RoleForm, gpus_per_pod, node_count, shape_problems, unrendered_shape
from dgdr_api.replay_spec import Role
from dgdr_api.skus import resolve_sku

from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.deployment import NodePool


@dataclass(frozen=True)
class Placement:
    """The pods of one worker."""

    node_count: int | None
    """Absent for a worker of one pod; at least 2 otherwise."""
    gpus_per_pod: int


def placement(role: Role, nodes: NodePool) -> Placement:
    """The pods of a worker: several only when it is wider than a node, then whole nodes.

    Raises:
        NotRenderableError: a shape that the backend cannot express on such nodes (`dgdr_api.expressible`), that the
            operator adds no multinode arguments for, or that needs an object beside the deployment.
    """
    field, shape = f"candidate.roles.{role.kind}.shape", role.shape
    form = RoleForm(
        backend=role.backend,
        engine_version=role.engine_version,
        kind=role.kind,
        shape=shape,
        is_moe=shape.moe_tp * shape.moe_ep > 1,
        gpus_per_node=nodes.gpus_per_node,
    )
    problems = shape_problems(form)
    if problems:
        raise NotRenderableError(field, shape.label, "; ".join(problems))
    pods, gpus = node_count(shape, nodes.gpus_per_node), gpus_per_pod(shape, nodes.gpus_per_node)
    if pods == 1:
        return Placement(node_count=None, gpus_per_pod=gpus)
    problem = unrendered_shape(shape, sku=resolve_sku(role.sku).name, gpus_per_node=nodes.gpus_per_node)
    if problem is not None:
        raise NotRenderableError(field, shape.label, problem)
    return Placement(node_count=pods, gpus_per_pod=gpus)
