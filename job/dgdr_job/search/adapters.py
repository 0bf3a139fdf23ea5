"""What router and planner ask of the roles beside them: the guards of engine.md section 3.

An adapter that estimates by performance data of its own must name the GPU type on which each role that it estimates
runs. Nothing need be named for a role on the default type; a name that is given must be right.
"""

from collections.abc import Mapping

from dgdr_api.replay_spec import Router
from dgdr_api.skus import resolve_sku
from dgdr_api.terms import RoleKind

from dgdr_job.search.branches import Branch
from dgdr_job.search.role_table import RoleTable, Skipped, table_of


def router_problem(router: Router, branch: Branch, default_sku: str) -> str | None:
    """Why a router cannot stand in front of these roles, or None; it estimates prefill work alone.

    Args:
        router: the router of the candidates.
        branch: roles, each with its GPU type.
        default_sku: the GPU type of roles without one of their own.
    """
    model = router.prefill_load_model
    if branch.topology == "agg" or model.type == "none":
        return None
    return _misnamed("search.router.prefillLoadModel", branch, {"prefill": model.sku}, default_sku)


def planner_problem(model_skus: Mapping[RoleKind, str | None] | None, branch: Branch, default_sku: str) -> str | None:
    """Why a planner cannot scale these roles, or None; its model estimates every role.

    Args:
        model_skus: GPU type that the planner's performance model names for each role; absent: it names none. None:
            the planner has no such model.
        branch: roles, each with its GPU type.
        default_sku: the GPU type of roles without one of their own.
    """
    if branch.topology == "agg" or model_skus is None:
        return None
    named = {role.kind: model_skus.get(role.kind) for role in branch.roles}
    return _misnamed("search.planner's performance model", branch, named, default_sku)


def _misnamed(adapter: str, branch: Branch, named: Mapping[RoleKind, str | None], default_sku: str) -> str | None:
    """The first role that runs on another GPU type than an adapter names for it."""
    for role in branch.roles:
        if role.kind not in named:
            continue
        effective, name = role.identity.sku, named[role.kind]
        known = None if name is None else resolve_sku(name).name
        if effective != (known or default_sku):
            return f"{adapter} names {known or 'no GPU type'}, but {role.kind} runs on {effective}; name that"
    return None


def refused_tables(branch: Branch, problem: str) -> tuple[RoleTable, ...]:
    """Tables without rows: no shape of the branch is evaluated."""
    return tuple(
        table_of(
            role.kind,
            (),
            tuple(Skipped(shape, "infeasible", "adapter_constraint", problem) for shape in role.gated.kept),
            [],
        )
        for role in branch.roles
    )
