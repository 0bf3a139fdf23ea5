"""How big a search is, before running it: what `dgdr space` shows. The names are used by other programs."""

import itertools
from typing import Any

from dgdr_api.events import branch_name
from dgdr_api.run import RunSpec

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
from dgdr_job.search.branches import Branch, RolePlan, plan_branch, tuples_of
from dgdr_job.search.explicit import check_parallel_configs
from dgdr_job.search.mapper import search_config
from dgdr_job.search.refusals import within_limits
from dgdr_job.search.resolved import rounds_of, version_chains
from dgdr_job.search.visual import images_of, visual_tokens
from dgdr_job.space.limits import POOL_OF_ROLE

NOTE = (
    "pairs = (prefill shape, workers) x (decode shape, workers), or (agg shape, workers), with encode workers also x "
    "(encode shape, workers), within the budget; "
    "pool = pairs x knobs x adapters x KV load ratios. A static search finds the best engine limits of each pair by "
    "exact matching, among all batches that the KV cache holds. Performance data is not asked here: dgdr coverage says "
    "what it covers."
)


def space_report(catalog: Catalog, run: RunSpec, *, kv_gated: bool) -> dict[str, Any]:
    """Sizes of every branch and what each gate removed.

    Args:
        catalog: source of model facts and KV estimates.
        run: a run's spec.
        kv_gated: whether shapes without KV room are left out.

    Raises:
        Unsupported: the model does not take the images of the request.
    """
    chains = version_chains(run)
    tokens = visual_tokens(catalog, run.model_ref.name, images_of(run))
    config = search_config(run, {backend: each.performance_data for backend, each in chains.items()}, tokens)
    check_parallel_configs(catalog, config, chains)
    branches = []
    for backend, topology, encoder in tuples_of(config.search_space):
        name = branch_name(backend, topology, encoder)
        try:
            branch = plan_branch(
                catalog, config, backend, topology, chains[backend], encoder=encoder, kv_gated=kv_gated
            )
        except Unsupported as error:
            removed = [{"reason": error.reason.value, "count": 0, "detail": error.message}]
            branches.append({"name": name, "shapes": {}, "pairs": 0, "pool": 0, "removed": removed})
        else:
            branches.append(_branch(branch, rounds_of(config), kv_gated=kv_gated))
    return {"branches": branches, "note": NOTE}


def _branch(branch: Branch, rounds: int, *, kv_gated: bool) -> dict[str, Any]:
    return {
        "name": branch.name,
        "shapes": {role.kind: len(role.gated.kept) for role in branch.roles},
        "pairs": branch.pairs,
        "pool": branch.pool * rounds,
        "removed": [
            *_illegal(branch),
            *([_gated(branch)] if kv_gated else []),
            *_too_wide(branch),
            *_no_counts(branch),
        ],
        "shapeLabels": {role.kind: [shape.label for shape in role.gated.kept] for role in branch.roles},
        "knobs": {role.kind: _knobs(role) for role in branch.roles},
    }


def _knobs(role: RolePlan) -> dict[str, Any]:
    if role.kind == "encode":
        return {"batchSize": list(role.knobs.max_num_seqs)}
    return {
        "maxNumBatchedTokens": list(role.knobs.max_num_batched_tokens),
        "maxNumSeqs": list(role.knobs.max_num_seqs),
        "blockSize": list(role.knobs.block_size),
        "enablePrefixCaching": list(role.knobs.enable_prefix_caching),
        **({"staticPromptTokens": list(role.knobs.ctx_tokens)} if role.knobs.ctx_tokens else {}),
    }


def _illegal(branch: Branch) -> list[dict[str, Any]]:
    """Shapes that model or backend cannot have, one entry per role."""
    return [
        {
            "reason": "backend_topology",
            "count": len(role.shapes.refused),
            "detail": f"{role.kind} shapes: "
            + "; ".join(f"{each.shape.label}: {each.reason}" for each in role.shapes.refused),
        }
        for role in branch.roles
        if role.shapes.refused
    ]


def _too_wide(branch: Branch) -> list[dict[str, Any]]:
    """Shapes, or pairs of them, of which one worker each takes more GPUs than the budget."""
    combinations = itertools.product(*(role.gated.kept for role in branch.roles))
    wide = [chosen for chosen in combinations if sum(shape.gpus for shape in chosen) > branch.limits.gpu_budget]
    if not wide:
        return []
    least = min(wide, key=lambda chosen: sum(shape.gpus for shape in chosen))
    example = f"{' + '.join(shape.label for shape in least)} take {sum(shape.gpus for shape in least)} GPUs"
    detail = f"{len(wide)} combinations of shapes exceed the budget of {branch.limits.gpu_budget} GPUs, e.g. {example}"
    return [{"reason": "gpu_budget", "count": len(wide), "detail": detail}]


def _no_counts(branch: Branch) -> list[dict[str, Any]]:
    """Shapes, or pairs of them, that fit into the budget and of which no worker counts keep the other limits."""
    limits = branch.limits
    combinations = [
        chosen
        for chosen in itertools.product(*(role.gated.kept for role in branch.roles))
        if sum(shape.gpus for shape in chosen) <= limits.gpu_budget
        and branch.pairs_of(*((shape,) for shape in chosen)) == 0
    ]
    if not combinations:
        return []
    example = " + ".join(shape.label for shape in combinations[0])
    bounds = within_limits(limits, [POOL_OF_ROLE[role.kind] for role in branch.roles])
    detail = f"{len(combinations)} combinations of shapes have no worker counts that make {bounds}, e.g. {example}"
    return [{"reason": "gpu_budget", "count": len(combinations), "detail": detail}]


def _gated(branch: Branch) -> dict[str, Any]:
    """Pairs that the KV gate removed, with the numbers of each shape."""
    details = [f"{role.kind} {out.detail}" for role in branch.roles for out in role.gated.removed]
    return {
        "reason": "kv_capacity",
        "count": branch.ungated_pairs - branch.pairs,
        "detail": "; ".join(details) or f"every shape holds {branch.max_sequence_tokens:,} tokens per rank",
    }
