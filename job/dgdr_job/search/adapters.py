"""What a router asks of the roles beside it: the guard of engine.md section 3."""

from dgdr_api.replay_spec import Router
from dgdr_api.skus import resolve_sku

from dgdr_job.search.branches import Branch
from dgdr_job.search.role_table import RoleTable, Skipped, table_of


def router_problem(router: Router, branch: Branch, default_sku: str) -> str | None:
    """Why a router cannot stand in front of these roles, or None.

    A router that estimates prefill work by performance data of its own must name the GPU type on which prefill runs;
    where that is the default type there is nothing to mistake.

    Args:
        router: the router of the candidates.
        branch: roles, each with its GPU type.
        default_sku: the GPU type of roles without one of their own.
    """
    model = router.prefill_load_model
    if branch.topology == "agg" or model.type == "none":
        return None
    effective = branch.roles[0].identity.sku
    named = "no GPU type" if model.sku is None else resolve_sku(model.sku).name
    if effective in (default_sku, named):
        return None
    return f"search.router.prefillLoadModel names {named}, but prefill runs on {effective}; name that"


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
