"""What the search needs to know of a SKU."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hardware:
    """One GPU and its surroundings.

    Attributes:
        sku: Canonical SKU.
        memory_bytes: Memory of one GPU.
        memory_bytes_per_s: Memory bandwidth of one GPU.
        gpus_per_node: GPUs of one node.
        gpus_per_rack: GPUs of one NVLink domain larger than a node, or None.
        sm_version: Compute capability times ten, e.g. 90, or None where there is none.
        power_watts: Thermal design power, or None; power under load is not measured.
    """

    sku: str
    memory_bytes: int
    memory_bytes_per_s: float
    gpus_per_node: int
    gpus_per_rack: int | None
    sm_version: int | None
    power_watts: float | None
