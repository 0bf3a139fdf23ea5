"""Which GPUs a candidate may take."""

from typing import Annotated, ClassVar

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.bounds import Gpus, Name
from dgdr_api.pod_texts import LABEL_NAMES, LabelValue
from dgdr_api.rules import Rule, RuledModel, values
from dgdr_api.terms import RoleKind

MAX_SKUS = 16

NodeLabels = Annotated[dict[str, LabelValue], Field(max_length=32), LABEL_NAMES]
"""Node labels by name."""


class Gpu(RuledModel):
    """GPU type of each role and the GPU budget of one candidate."""

    rules: ClassVar = (
        Rule(
            id="min-budget",
            cel="!has(self.minBudget) || self.minBudget <= self.budget",
            message="minBudget must not exceed budget",
            holds=lambda gpu: gpu.min_budget is None or gpu.min_budget <= gpu.budget,
            field=".minBudget",
            found=values("minBudget", "budget"),
        ),
    )

    sku: Name
    """GPU type, e.g. h200_sxm; `dgdr catalog skus` lists the names and their aliases."""
    prefill_sku: Name | None = None
    """GPU type of prefill workers; sku by default. Only with disagg in search.topologies."""
    decode_sku: Name | None = None
    """GPU type of decode workers; sku by default. Only with disagg in search.topologies."""
    encoder_sku: Name | None = None
    """GPU type of encode workers; sku by default. Only with search.encoder Disaggregated or Both."""
    budget: Gpus
    """Hard cap on all GPUs of one candidate, encoders included: 1 to 65,536."""
    min_budget: Gpus | None = None
    """Fewest GPUs of one candidate, at most budget."""
    budget_by_sku: Annotated[dict[str, Gpus], Field(max_length=MAX_SKUS)] = Field(default_factory=dict)
    """Further caps by GPU type, besides the total."""
    per_node: Gpus | None = None
    """GPUs per node; what the catalog says by default."""
    node_selector: Annotated[dict[str, NodeLabels], Field(max_length=MAX_SKUS)] = Field(default_factory=dict)
    """Node labels by GPU type: how a role finds its nodes. By default the GPU product label of the catalog; required
    for a type whose label the catalog does not know."""

    def sku_of(self, kind: RoleKind) -> str:
        """The GPU type of a role; aggregated workers always take ``sku``."""
        own = {"agg": None, "prefill": self.prefill_sku, "decode": self.decode_sku, "encode": self.encoder_sku}
        return own[kind] or self.sku


class Hardware(ApiModel):
    """The hardware to plan for."""

    gpu: Gpu
    """GPU types and budget."""
