"""Budgets and caps that no deployment can keep together, found from the numbers alone: no model, no shape is needed."""

import itertools
from operator import attrgetter

from dgdr_api.errors import Problem
from dgdr_api.replay_spec import role_kinds
from dgdr_api.terms import EncoderPlacement, RoleKind, Topology

from dgdr_job.search.config import SearchSpace

ROLE_CAPS = ("max_prefill_workers", "max_decode_workers", "max_prefill_gpus", "max_decode_gpus")
"""Caps of one role of disaggregated deployments."""


def contradiction(space: SearchSpace) -> Problem | None:
    """What in budgets and caps excludes every deployment of every topology, with the numbers; None: nothing does.

    What the smallest worker of a model takes is told by BudgetTooSmall, once the model is known.
    """
    if space.min_gpu_budget > space.gpu_budget:
        return _problem(space, "min_gpu_budget", f"is {space.min_gpu_budget}, gpu_budget is {space.gpu_budget}")
    for name in ROLE_CAPS:
        if getattr(space, name) is not None and "disagg" not in space.deployment_mode:
            return _problem(space, name, "caps a role of disagg, which deployment_mode leaves out")
    branches = list(itertools.product(space.deployment_mode, space.encoders))
    used = {space.sku_of(kind) for branch in branches for kind in role_kinds(*branch)}
    for sku in space.gpu_budget_by_sku:
        if sku not in used:
            message = f"caps {sku}, which no role of this search uses: it has {', '.join(sorted(used))}"
            return _problem(space, "gpu_budget_by_sku", message)
    found = [_excluded(space, *branch) for branch in branches]
    return None if None in found else found[0]


def _excluded(space: SearchSpace, topology: Topology, encoder: EncoderPlacement) -> Problem | None:
    """Why no deployment of one topology, with the encoder in one place, is within the caps.

    A role has at least one of the smallest workers, and at most what its caps allow; roles on one GPU type share its
    cap.
    """
    kinds = role_kinds(topology, encoder)
    smallest = {kind: space.encode.tp[0] if kind == "encode" else space.worker_widths[0] for kind in kinds}
    for kind in kinds:
        name, cap = _tightest(space, kind)
        if cap < smallest[kind]:
            listed = "encode.tp" if kind == "encode" else "gpus_per_worker"
            return _problem(
                space, name, f"is {cap}, but the smallest of {listed} is {smallest[kind]}: no {kind} worker fits"
            )
    skus = {space.sku_of(kind) for kind in kinds}
    if max(smallest.values()) > 1:
        least = sum(smallest.values())
        if least > space.gpu_budget:
            message = f"is {space.gpu_budget}, but a {topology} deployment of gpus_per_worker takes {least} at least"
            return _problem(space, "gpu_budget", message)
        for sku in sorted(skus):
            least = sum(smallest[kind] for kind in kinds if space.sku_of(kind) == sku)
            cap = space.gpu_budget_by_sku.get(sku, least)
            if least > cap:
                message = f"allows {cap} GPUs of {sku}, but a {topology} deployment takes {least} at least"
                return _problem(space, "gpu_budget_by_sku", message)
    reach = sum(
        min(
            space.gpu_budget_by_sku.get(sku, space.gpu_budget),
            sum(_tightest(space, kind)[1] for kind in kinds if space.sku_of(kind) == sku),
        )
        for sku in skus
    )
    if reach < space.min_gpu_budget:
        message = f"is {space.min_gpu_budget}, but the caps allow {reach} GPUs of a {topology} deployment"
        return _problem(space, "min_gpu_budget", message)
    return None


def _problem(space: SearchSpace, key: str, message: str) -> Problem:
    return Problem(f"search_space.{key}", message, attrgetter(key)(space))


def _tightest(space: SearchSpace, kind: RoleKind) -> tuple[str, int]:
    """The key that allows a role the fewest GPUs, and how many."""
    sku = space.sku_of(kind)
    caps = {"gpu_budget": space.gpu_budget, "gpu_budget_by_sku": space.gpu_budget_by_sku.get(sku, space.gpu_budget)}
    if kind in ("prefill", "decode"):
        gpus, workers = getattr(space, f"max_{kind}_gpus"), getattr(space, f"max_{kind}_workers")
        if gpus is not None:
            caps[f"max_{kind}_gpus"] = gpus
        if workers is not None:
            caps[f"max_{kind}_workers"] = workers * space.worker_widths[-1]
    if kind == "encode" and space.encode.max_workers is not None:
        caps["encode.max_workers"] = space.encode.max_workers * space.encode.tp[-1]
    name = min(caps, key=caps.__getitem__)
    return name, caps[name]
