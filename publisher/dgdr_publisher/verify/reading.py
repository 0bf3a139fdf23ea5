"""What a deployment says, read back: plain values in the terms of a candidate."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One thing in which a deployment is not what was evaluated, or breaks a rule of the operator or an engine."""

    where: str
    """Place in the deployment, e.g. ``decode.args.--max-num-seqs`` or ``metadata.name``."""
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class EngineReading:
    """What the arguments of one worker make of the engine, per attention data-parallel rank."""

    model: str
    served_name: str
    revision: str | None
    trust_remote_code: bool
    mode: str
    """agg, prefill or decode."""
    transfer: str | None
    """How KV moves, e.g. ``nixl``; absent for a role that moves none."""
    bootstrap_port: int | None
    """Where prefill and decode workers meet, if the engine is told."""
    tp: int
    """Attention tensor parallelism inside one data-parallel rank."""
    pp: int
    attention_dp: int
    moe_ep: int
    """Expert parallelism; 1 also for a dense model."""
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    max_sequence_length: int
    enable_prefix_caching: bool
    enable_chunked_prefill: bool
    memory_fraction: float
    kv_format: str


@dataclass(frozen=True)
class PodReading:
    """What every component has: image, model cache, token."""

    image: str
    runtime_version_override: str | None
    hf_home: str | None
    token_secret: tuple[str, str] | None
    """Name and key of the Secret behind HF_TOKEN."""
    claims: Mapping[str, str]
    """Claim by mount path."""


@dataclass(frozen=True)
class WorkerReading:
    """One worker component."""

    component: str
    kind: str
    """agg, prefill or decode, by the component's type."""
    replicas: int
    node_count: int
    """1 without multinode."""
    gpus_per_pod: int
    node_selector: Mapping[str, str]
    pod: PodReading
    engine: EngineReading

    @property
    def gpus(self) -> int:
        """GPUs of all replicas: replicas times nodes times GPUs per pod."""
        return self.replicas * self.node_count * self.gpus_per_pod


@dataclass(frozen=True)
class FrontendReading:
    """The frontend component."""

    component: str
    replicas: int
    router_mode: str
    model_name: str | None
    model_path: str | None
    trust_remote_code: bool
    pod: PodReading


@dataclass(frozen=True)
class DeploymentReading:
    """A whole deployment."""

    name: str
    backend: str
    frontend: FrontendReading
    workers: tuple[WorkerReading, ...]

    @property
    def topology(self) -> str:
        """``agg`` for one pool of workers, ``disagg`` for a prefill and a decode pool, else the kinds found."""
        kinds = tuple(worker.kind for worker in self.workers)
        return {("agg",): "agg", ("prefill", "decode"): "disagg"}.get(kinds, "+".join(kinds) or "none")

    @property
    def total_gpus(self) -> int:
        """GPUs of the deployment."""
        return sum(worker.gpus for worker in self.workers)
