"""The parallel shape of one worker, and the one definition of how many GPUs it takes.

Every room counts GPUs by `Shape.gpus` and `total_gpus`: enumeration, gating, scoring, rendering, read-back check.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, model_validator

from dgdr_api.base import ApiModel

Degree = Annotated[int, Field(ge=1, le=65_536)]


class Shape(ApiModel):
    """How one worker splits a model over its GPUs.

    MoE dimensions re-partition the GPUs of the worker and never multiply them:
    ``moe_tp * moe_ep == tp * attention_dp * cp`` for a mixture of experts, both 1 for a dense model.
    """

    tp: Degree = 1
    """Attention tensor parallelism inside one data-parallel rank."""
    pp: Degree = 1
    """Pipeline parallelism."""
    attention_dp: Degree = 1
    """Attention data-parallel ranks."""
    moe_tp: Degree = 1
    """Tensor parallelism of the experts."""
    moe_ep: Degree = 1
    """Expert parallelism."""
    cp: Degree = 1
    """Context parallelism."""

    @model_validator(mode="after")
    def _experts_fill_the_worker(self) -> "Shape":
        experts = self.moe_tp * self.moe_ep
        width = self.tp * self.attention_dp * self.cp
        if experts not in (1, width):
            raise ValueError(
                f"moeTp * moeEp = {experts}, but tp * attentionDp * cp = {width}: "
                "the experts are spread over exactly the worker's GPUs, or both are 1 for a dense model"
            )
        return self

    @property
    def gpus(self) -> int:
        """GPUs of one worker: tp * pp * attention_dp * cp."""
        return self.tp * self.pp * self.attention_dp * self.cp

    @property
    def key(self) -> tuple[int, int, int, int, int, int]:
        """(tp, pp, attention_dp, moe_tp, moe_ep, cp): a sortable, hashable identity."""
        return (self.tp, self.pp, self.attention_dp, self.moe_tp, self.moe_ep, self.cp)

    @property
    def label(self) -> str:
        """What a person reads, e.g. ``tp2`` or ``dp8-ep8``: only the degrees above one."""
        names = zip(("tp", "pp", "dp", "moetp", "ep", "cp"), self.key, strict=True)
        return "-".join(f"{name}{degree}" for name, degree in names if degree > 1) or "tp1"


def total_gpus(workers_and_shapes: Iterable[tuple[int, Shape]]) -> int:
    """GPUs of a deployment: the sum over its roles of workers times GPUs per worker, encoders included."""
    return sum(workers * shape.gpus for workers, shape in workers_and_shapes)
