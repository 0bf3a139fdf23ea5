"""What is simulated, in numbers: the roles of a deployment, and how requests and KV move between them."""

from dataclasses import dataclass

from dgdr_api.terms import Backend, RoleKind

from dgdr_job.replay.pass_times import NS_PER_MS, PassTimes

SGLANG_MAX_PREFILL_TOKENS = 16_384
SGLANG_CLIP_MAX_NEW_TOKENS = 4_096
SGLANG_INITIAL_NEW_TOKEN_RATIO = 0.7
SGLANG_LEAST_NEW_TOKEN_SHARE = 0.14
SGLANG_NEW_TOKEN_DECAY_STEPS = 600
SGLANG_RETRACT_DECODE_STEPS = 20


@dataclass(frozen=True)
class RolePlan:
    """The workers of one kind. Limits hold for each attention data-parallel rank."""

    kind: RoleKind
    backend: Backend
    workers: int
    ranks: int
    gpus_per_worker: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    num_blocks: int
    prefix_caching: bool
    chunked_prefill: bool
    preempt_oldest: bool
    times: PassTimes

    @property
    def capacity_tokens(self) -> int:
        """Tokens that the KV cache of one rank holds."""
        return self.num_blocks * self.block_size

    @property
    def max_prefill_tokens(self) -> int:
        """Prompt tokens of one SGLang pass; a chunk always fits."""
        return max(SGLANG_MAX_PREFILL_TOKENS, self.max_num_batched_tokens)


@dataclass(frozen=True)
class TransferPlan:
    """How KV moves from prefill to decode workers."""

    ms_per_token: float = 0.0
    """bytes per token / bandwidth; 0: free."""
    latency_ms: float = 0.0
    only_missing: bool = False
    """Whether tokens that the destination holds stay."""
    contention: bool = False
    """Whether the transfers that leave one prefill worker go one after the other."""

    def link_ns(self, tokens: int) -> int:
        """Nanoseconds for which a transfer holds its link."""
        return round(tokens * self.ms_per_token * NS_PER_MS)

    @property
    def latency_ns(self) -> int:
        """Nanoseconds that pass after a transfer has left its link."""
        return round(self.latency_ms * NS_PER_MS)


@dataclass(frozen=True)
class RouterPlan:
    """How requests find a worker."""

    kv: bool = False
    overlap_credit: float = 1.0
    prefill_load_scale: float = 1.0


@dataclass(frozen=True)
class Plan:
    """A deployment: one aggregated role, or prefill and decode; with an encode pool in front if there is one."""

    roles: tuple[RolePlan, ...]
    """Without the encode role."""
    encode: RolePlan | None = None
    transfer: TransferPlan = TransferPlan()
    router: RouterPlan = RouterPlan()

    @property
    def disaggregated(self) -> bool:
        """Whether prefill and decode run on workers of their own."""
        return len(self.roles) == 2  # noqa: PLR2004 - prefill and decode

    def cause_of_rejection(self, isl: int, osl: int) -> str | None:
        """Why no worker can ever hold a request; None when all can."""
        for role in self.roles:
            outputs = 1 if role.kind == "prefill" else osl
            if -(-(isl + outputs) // role.block_size) > role.num_blocks:
                return "kv_capacity"
            if not role.chunked_prefill and role.kind != "decode" and isl > role.max_num_batched_tokens:
                return "batched_tokens"
        return None
