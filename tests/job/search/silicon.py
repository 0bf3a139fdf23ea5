"""A performance model of a few drawn numbers behind the catalog's interface, for whole searches in milliseconds."""

# ruff: noqa: ARG002 - methods take what the interface gives them

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeVar, cast

from dgdr_api.shape import Shape
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.hardware import Hardware
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.catalog.provenance import DataProvenance, SourceShares
from dgdr_job.catalog.quantization import Quantization
from pydantic import JsonValue, TypeAdapter

from tests.job.search.oracle import Split, pick

if TYPE_CHECKING:
    from dgdr_job.catalog.agg_estimate import AggregatedPoint
    from dgdr_job.catalog.aic import PerformanceModel

Value = TypeVar("Value")
SHARES = SourceShares(1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class DrawnSilicon:
    """Times and KV tokens drawn by a seed from few values, so that ties and bounds met exactly occur."""

    seed: int
    is_moe: bool

    def prefill_ms(self, sku: str, split: Split, batch: int) -> float:
        base: float = pick(self.seed, ("prefill", sku, split), (10.0, 12.5, 20.0, 25.0, 30.0, 100 / 3))
        return base * (1 + (batch - 1) * 0.75)

    def decode_total_ms(self, sku: str, split: Split, batch: int, osl: int) -> float:
        base: float = pick(self.seed, ("decode", sku, split), (2.0, 2.5, 5.0, 10.0))
        slope: float = pick(self.seed, ("slope", sku, split), (0.0, 0.125, 0.5, 1.0))
        bump: float = pick(self.seed, ("bump", sku, split, batch), (0.0, 0.0, 1.0))  # not monotone in the batch
        return (osl - 1) * (base + slope * batch + bump)

    def aggregated(self, sku: str, split: Split, batch: int, ctx_tokens: int, osl: int) -> tuple[float, float, float]:
        ttft = pick(self.seed, ("ttft", sku, split), (10.0, 20.0, 40.0)) * (1 + ctx_tokens / 2048)
        base: float = pick(self.seed, ("tpot", sku, split), (2.0, 5.0, 10.0))
        tpot = 0.0 if osl == 1 else base + batch / 4 + ctx_tokens / 1024
        latency = ttft + tpot * (osl - 1)
        share: float = pick(self.seed, ("share", sku, split, batch, ctx_tokens), (0.5, 0.9, 1.0, 1.25))
        return ttft, tpot, share * 1000 * batch * split[1] / latency

    def kv_tokens(self, sku: str, split: Split, batched_tokens: int) -> int:
        most: int = pick(self.seed, ("kv", sku, split), (0, 1500, 2300, 4100, 6007, 9999))
        pass_tokens_per_kv_token: int = pick(self.seed, ("activations",), (1024, 64, 16))
        return max(most - batched_tokens // pass_tokens_per_kv_token, 0)


class DrawnCatalog(Catalog):
    """The catalog over drawn silicon: nothing is read from disk, and no performance model is imported."""

    def __init__(self, silicon: DrawnSilicon) -> None:
        super().__init__()
        self._silicon = silicon

    def model(self, name: str) -> ModelFacts:
        experts = 128 if self._silicon.is_moe else 0
        return ModelFacts(
            architecture="Drawn",
            layers=64,
            attention_heads=64,
            kv_heads=8,
            hidden_size=4096,
            is_moe=self._silicon.is_moe,
            experts=experts,
            experts_per_token=8 if experts else 0,
            moe_intermediate_size=2048 if experts else 0,
            context_length=40_960,
            vision=None,
            quantization=None,
            quantization_block=None,
            nextn_predict_layers=0,
            config_sha256="0" * 64,
        )

    def hardware(self, sku: str) -> Hardware:
        return Hardware(sku, 141 << 30, 4.8e12, 8, None, 90, None)

    def quantization(self, identity: PerfIdentity) -> Quantization:
        return Quantization("bfloat16", "bfloat16", "bfloat16", "bfloat16", "half")

    def data_provenance(self, identity: PerfIdentity) -> DataProvenance:
        return DataProvenance("0", (), (), ())

    def default_memory_fraction(self, identity: PerfIdentity, shape: Shape) -> float:
        return 0.9

    def kv(
        self, identity: PerfIdentity, shape: Shape, max_num_batched_tokens: int, memory_fraction: float | None = None
    ) -> KvEstimate:
        tokens = self._silicon.kv_tokens(identity.sku, split_of(shape), max_num_batched_tokens)
        fraction = 0.9 if memory_fraction is None else memory_fraction
        return KvEstimate(tokens, fraction, "of_total", max_num_batched_tokens, 141.0, 61.0, 1.0, 1.0, 1.0, 1000)

    def recall(
        self,
        kind: str,
        identity: PerfIdentity,
        inputs: dict[str, JsonValue],
        adapter: TypeAdapter[Value],
        compute: "Callable[[PerformanceModel], Value]",
    ) -> Value:
        facts = SimpleNamespace(layers=64)
        hardware = SimpleNamespace(memory_bytes_per_s=4.8e12)

        def worker(shape: Shape) -> DrawnWorker:
            return DrawnWorker(self._silicon, identity.sku, split_of(shape))

        return compute(cast("PerformanceModel", SimpleNamespace(worker=worker, facts=facts, hardware=hardware)))


@dataclass(frozen=True)
class DrawnWorker:
    """The times of one worker shape, as the performance model's worker gives them."""

    silicon: DrawnSilicon
    sku: str
    split: Split

    def prefill_ms(self, batches: Sequence[int], isl: int) -> list[float]:
        return [self.silicon.prefill_ms(self.sku, self.split, batch) for batch in batches]

    def decode_total_ms(self, batches: Sequence[int], isl: int, osl: int) -> list[float]:
        return [self.silicon.decode_total_ms(self.sku, self.split, batch, osl) for batch in batches]

    def aggregated(
        self, points: Sequence[tuple[int, int]], isl: int, osl: int, images: None = None
    ) -> "list[AggregatedPoint]":
        answers = [self.silicon.aggregated(self.sku, self.split, batch, ctx, osl) for batch, ctx in points]
        return [
            cast("AggregatedPoint", SimpleNamespace(ttft_ms=ttft, tpot_ms=tpot, requests_per_s=rate))
            for ttft, tpot, rate in answers
        ]

    def prefill_shares(self, batch: int, isl: int) -> SourceShares:
        return SHARES

    def decode_shares(self, batch: int, isl: int, osl: int) -> SourceShares:
        return SHARES

    def mixed_shares(self, batch: int, ctx_tokens: int, isl: int, osl: int) -> SourceShares:
        return SHARES

    def decode_step_ms(self, batch: int, isl: int, osl: int) -> float:
        return 5.0

    def weights_read_bytes(self, batch: int) -> float:
        return 1e9


def split_of(shape: Shape) -> Split:
    """The oracle's name of a shape."""
    return (shape.tp, shape.attention_dp, shape.moe_tp, shape.moe_ep)
