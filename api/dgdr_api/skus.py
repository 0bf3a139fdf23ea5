"""The SKU catalog: GPU types by the names of the performance data, as data in ``data/skus.yaml``."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from dgdr_api.errors import UnknownSku
from dgdr_api.fast_yaml import load

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
GPU_TAINT: Mapping[str, str] = MappingProxyType({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})
ARM_TAINT: Mapping[str, str] = MappingProxyType(
    {"key": "kubernetes.io/arch", "operator": "Equal", "value": "arm64", "effect": "NoSchedule"}
)


@dataclass(frozen=True, kw_only=True)
class Sku:
    """One GPU type."""

    name: str
    """Canonical: as the performance data spells it."""
    aliases: tuple[str, ...]
    """Other names that mean the same."""
    memory_bytes: int
    """Memory of one GPU."""
    sm: int | None
    """Compute capability times ten, e.g. 90; None for a GPU that is not NVIDIA's."""
    gpus_per_node: int
    """GPUs of one node."""
    gpus_per_rack: int | None
    """GPUs that one NVLink fabric joins, when that is more than a node."""
    arch: str
    """CPU architecture of its nodes, as kubernetes.io/arch spells it."""
    node_labels: Mapping[str, str] | None
    """Labels of nodes with this GPU; None when they are not known."""
    tolerations: tuple[Mapping[str, str], ...]
    """Taints that pods on such nodes must tolerate."""
    shm_size: str | None
    """Shared memory of a worker; None: the operator's default."""
    shm_size_decode: str | None
    """Shared memory of a decode worker."""
    performance_data: bool
    """Whether any performance data exists."""


@cache
def catalog() -> Mapping[str, Sku]:
    """All GPU types by canonical name, those with performance data first."""
    text = files("dgdr_api").joinpath("data/skus.yaml").read_text("utf-8")
    return MappingProxyType({name: _sku(name, entry) for name, entry in load(text).items()})


def resolve_sku(text: str) -> Sku:
    """Find a GPU type by its name or an alias; case, separators and a leading ``nvidia`` do not matter.

    A bare name (``H100``, ``A100``) means the SXM form, the only one with performance data.

    Raises:
        UnknownSku: there is none; it names near matches.
    """
    known = _by_key()
    key = _key(text)
    if key in known:
        return known[key]
    near = difflib.get_close_matches(key, known, n=6, cutoff=0.6)
    names = dict.fromkeys(known[match].name for match in near)
    raise UnknownSku(text, list(names)[:3], list(catalog()))


@cache
def _by_key() -> Mapping[str, Sku]:
    return MappingProxyType({_key(name): sku for sku in catalog().values() for name in (sku.name, *sku.aliases)})


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower()).removeprefix("nvidia")


def _sku(name: str, entry: Mapping[str, Any]) -> Sku:
    arch = entry.get("arch", "amd64")
    taints = ((GPU_TAINT,) if entry.get("tolerateGpuTaint") else ()) + ((ARM_TAINT,) if arch == "arm64" else ())
    labels = entry.get("nodeLabels")
    return Sku(
        name=name,
        aliases=tuple(entry["aliases"]),
        memory_bytes=entry["memoryBytes"],
        sm=entry.get("sm"),
        gpus_per_node=entry["gpusPerNode"],
        gpus_per_rack=entry.get("gpusPerRack"),
        arch=arch,
        node_labels=None if labels is None else MappingProxyType(labels),
        tolerations=taints,
        shm_size=entry.get("shmSize"),
        shm_size_decode=entry.get("shmSizeDecode", entry.get("shmSize")),
        performance_data=entry["performanceData"],
    )
