"""The name of one set of performance data."""

from dataclasses import dataclass

from dgdr_api.terms import Backend


@dataclass(frozen=True)
class PerfIdentity:
    """Which model runs on which hardware under which measured software.

    Attributes:
        model: Hugging Face id, or the path of a local directory with a config.json.
        sku: Canonical SKU, e.g. ``h200_sxm``.
        backend: ``vllm``, ``sglang`` or ``trtllm``.
        data_version: Literal version of the data, e.g. ``0.24.0``; never an alias such as ``current``.
    """

    model: str
    sku: str
    backend: Backend
    data_version: str

    @property
    def label(self) -> str:
        """What a person reads, e.g. ``Qwen/Qwen3-32B on h200_sxm with vllm 0.24.0``."""
        return f"{self.model} on {self.sku} with {self.backend} {self.data_version}"
