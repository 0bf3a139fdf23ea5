"""Budgets and caps that no deployment can keep together, found from the numbers alone: no model, no shape is needed."""

from typing import TYPE_CHECKING

from dgdr_api.replay_spec import ROLES_OF_TOPOLOGY
from dgdr_api.terms import RoleKind, Topology

if TYPE_CHECKING:
    from dgdr_job.search.config import SearchSpace

ROLE_CAPS = ("max_prefill_workers", "max_decode_workers", "max_prefill_gpus", "max_decode_gpus")
"""Caps of one role of disaggregated deployments."""


def contradiction(space: "SearchSpace") -> str | None:
    """What in budgets and caps excludes every deployment of every topology, with the numbers; None: nothing does."""
    if space.min_gpu_budget > space.gpu_budget:
        return f"min_gpu_budget {space.min_gpu_budget} exceeds gpu_budget {space.gpu_budget}"
    for name in ROLE_CAPS:
        if getattr(space, name) is not None and "disagg" not in space.deployment_mode:
            return f"{name} caps a role of disagg, which deployment_mode leaves out"
    found = [_excluded(space, topology) for topology in space.deployment_mode]
    return None if None in found else found[0]


def _excluded(space: "SearchSpace", topology: Topology) -> str | None:
    """Why no deployment of one topology is within the caps.

    A role has at least one of the smallest workers, and at most what its caps allow; roles on one GPU type share its
    cap.
    """
    smallest = space.gpus_per_worker[0]
    kinds = ROLES_OF_TOPOLOGY[topology]
    for kind in kinds:
        name, cap = _tightest(space, kind)
        if cap < smallest:
            return f"{name} {cap} is below the smallest of gpus_per_worker, {smallest}: no {kind} worker fits"
    skus = {space.sku_of(kind) for kind in kinds}
    if smallest > 1:  # what the smallest worker of a model takes is told by BudgetTooSmall, once the model is known
        least = smallest * len(kinds)
        if least > space.gpu_budget:
            return f"gpu_budget is {space.gpu_budget}, a {topology} deployment of gpus_per_worker takes {least} at least"
        for sku in sorted(skus):
            least = smallest * sum(space.sku_of(kind) == sku for kind in kinds)
            cap = space.gpu_budget_by_sku.get(sku, least)
            if least > cap:
                return f"gpu_budget_by_sku allows {cap} GPUs of {sku}, a {topology} deployment takes {least} at least"
    reach = sum(
        min(
            space.gpu_budget_by_sku.get(sku, space.gpu_budget),
            sum(_tightest(space, kind)[1] for kind in kinds if space.sku_of(kind) == sku),
        )
        for sku in skus
    )
    if reach < space.min_gpu_budget:
        return f"the caps allow {reach} GPUs of a {topology} deployment, min_gpu_budget is {space.min_gpu_budget}"
    return None


def _tightest(space: "SearchSpace", kind: RoleKind) -> tuple[str, int]:
    """The cap that allows a role the fewest GPUs, and that number."""
    caps = {"gpu_budget": space.gpu_budget}
    sku = space.sku_of(kind)
    if sku in space.gpu_budget_by_sku:
        caps[f"gpu_budget_by_sku.{sku}"] = space.gpu_budget_by_sku[sku]
    if kind in ("prefill", "decode"):
        gpus, workers = getattr(space, f"max_{kind}_gpus"), getattr(space, f"max_{kind}_workers")
        if gpus is not None:
            caps[f"max_{kind}_gpus"] = gpus
        if workers is not None:
            caps[f"max_{kind}_workers"] = workers * space.gpus_per_worker[-1]
    name = min(caps, key=caps.__getitem__)
    return name, caps[name]
