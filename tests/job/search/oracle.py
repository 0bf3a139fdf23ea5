"""The slow, obvious search: every shape, row and worker count in plain Python, written from engine.md alone.

It reads a request as a person writes it and raw times as the performance model gives them, and shares nothing with the
engine but those. Sources: engine.md section 3 (shapes, counts), 4 (KV gate, KV load ratio), 6 (rows, matching, load),
8 (scores, fronts), and docs/decisions.md where the project decides differently.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random
from typing import Any, Protocol

TIE = 1e-12
GRID = (*range(1, 16), *range(16, 31, 2), *range(32, 125, 4), *range(128, 505, 8), 512)
NODE = 8
"""GPUs of a node of h100_sxm and h200_sxm."""
HEADS = 64
LOWER_IS_BETTER = ("ttft", "e2eLatency", "minGpus")


class Silicon(Protocol):
    """Raw times and KV tokens of a worker on a GPU type, split as (tp, attention dp, moe tp, moe ep)."""

    @property
    def is_moe(self) -> bool:
        """Whether the model has experts."""

    def prefill_ms(self, sku: str, split: "Split", batch: int) -> float:
        """One pass over so many prompts on each rank."""

    def decode_total_ms(self, sku: str, split: "Split", batch: int, osl: int) -> float:
        """All steps after the first token."""

    def aggregated(self, sku: str, split: "Split", batch: int, ctx_tokens: int, osl: int) -> tuple[float, float, float]:
        """TTFT and TPOT in ms, requests per second of the worker."""

    def kv_tokens(self, sku: str, split: "Split", batched_tokens: int) -> int:
        """KV tokens of one rank."""


Split = tuple[int, int, int, int]


@dataclass(frozen=True)
class Row:
    """What one worker of a role does."""

    sku: str
    split: Split
    batch: int
    batched_tokens: int
    kv_tokens: int
    rate: float
    ttft: float
    tpot: float

    @property
    def gpus(self) -> int:
        """GPUs of one worker."""
        return self.split[0] * self.split[1]

    @property
    def ranks(self) -> int:
        """Attention data-parallel ranks."""
        return self.split[1]


@dataclass(frozen=True)
class Served:
    """A feasible deployment: rows and workers of each role, and what it does under the load."""

    topology: str
    rows: tuple[Row, ...]
    workers: tuple[int, ...]
    osl: int
    cost: float
    rate: float
    ttft: float
    tpot: float
    concurrency: int | None
    late: bool = field(default=False)
    """Whether a bound that is not strict is missed."""

    @property
    def gpus(self) -> int:
        """GPUs of all workers."""
        return sum(row.gpus * count for row, count in zip(self.rows, self.workers, strict=True))

    @property
    def e2e(self) -> float:
        """Request latency in ms."""
        return self.ttft + self.tpot * (self.osl - 1)

    def value(self, metric: str) -> float:
        """The metric in its own direction."""
        tokens = self.rate * self.osl
        values: dict[str, Callable[[], float]] = {
            "throughput": lambda: tokens,
            "throughputPerGpu": lambda: tokens / self.gpus,
            "throughputPerCost": lambda: tokens * 3600 / self.cost,
            "throughputPerUser": lambda: 1000 / self.tpot,
            "ttft": lambda: self.ttft,
            "e2eLatency": lambda: self.e2e,
            "minGpus": lambda: float(self.gpus),
        }
        return values[metric]()

    def score(self, metric: str) -> float:
        """Higher is better."""
        return -self.value(metric) if metric in LOWER_IS_BETTER else self.value(metric)

    def rank(self, metric: str) -> tuple[float, ...]:
        """Lower is better: score, fewer GPUs, and then the higher rate; for minGpus goodput, then latency."""
        if metric == "minGpus":
            return (-self.score(metric), float(self.gpus), -(0.0 if self.late else self.rate), self.e2e)
        return (-self.score(metric), float(self.gpus), -self.rate)


def closely(one: float, other: float) -> bool:
    """Whether two means are equal."""
    return math.isclose(one, other, rel_tol=1e-9)


def at_most(value: float, bound: float | None) -> bool:
    """An inclusive bound."""
    return bound is None or value <= bound * (1 + TIE)


class Oracle:
    """All feasible deployments of a request."""

    def __init__(self, request: dict[str, Any], silicon: Silicon) -> None:
        self.request, self.silicon = request, silicon
        self.gpu: dict[str, Any] = request["hardware"]["gpu"]
        self.load: dict[str, Any] = request["workload"]["static"]
        self.isl, self.osl = self.load["isl"], self.load["osl"]
        self.longest: int = request["workload"].get("maxSequenceLength") or self.isl + self.osl
        self.space: dict[str, Any] = request["search"].get("parameters", {}).get("search_space", {})
        self.matching: dict[str, Any] = request["search"].get("parameters", {}).get("rate_matching", {})
        self.backend: str = request["backends"][0]
        self.block = {"vllm": 64, "sglang": 1}[self.backend]

    def served(self) -> Iterator[Served]:
        """Every feasible deployment of every topology."""
        for topology in self.request["search"]["topologies"]:
            roles = {
                "agg": [list(self.agg_rows(self.gpu["sku"]))],
                "disagg": [
                    list(self.prefill_rows(self.gpu.get("prefillSku", self.gpu["sku"]))),
                    list(self.decode_rows(self.gpu.get("decodeSku", self.gpu["sku"]))),
                ],
            }[topology]
            for rows in product(*roles):
                for workers in self.counts(topology, rows):
                    for ratio in self.ratios():
                        yield from self.loaded(topology, rows, workers, ratio)

    def splits(self) -> Iterator[Split]:
        """Section 3: the pure patterns; wider than a node only whole nodes."""
        for n in sorted(set(self.space.get("gpus_per_worker", (1, 2, 4, 8, 16)))):
            if n > NODE and (n % NODE or n & (n - 1)):
                continue
            patterns: tuple[Split, ...] = ((n, 1, 1, n), (1, n, 1, n), (n, 1, n, 1), (1, n, n, 1))
            if n == 1 or not self.silicon.is_moe:
                patterns = ((n, 1, 1, 1),)
            yield from (split for split in patterns if HEADS % split[0] == 0)

    def listed(self, role: str, name: str, default: list[int]) -> list[int]:
        """The listed values of an engine limit, ascending."""
        return sorted(self.space.get(f"{role}_{name}", default))

    def holds_longest(self, kv_tokens: int) -> bool:
        """Section 4: more tokens than the longest sequence, and in whole blocks as many (docs/decisions.md)."""
        return kv_tokens > self.longest and kv_tokens // self.block >= math.ceil(self.longest / self.block)

    def batches(self, kv_tokens: int, most: int) -> list[int]:
        """Section 6: batches whose requests the KV cache holds at full length; section 4: the longest one fits."""
        if not self.holds_longest(kv_tokens):
            return []
        return [b for b in GRID if b * (self.isl + self.osl) <= kv_tokens and b <= most]

    def prefill_rows(self, sku: str) -> Iterator[Row]:
        """L = 1.1 * prefill, TTFT = 1.8 * L, 0.9 of 1000 * b * ranks / L."""
        budgets = self.listed("prefill", "max_num_batched_tokens", [8192, 16384, 32768])
        most = self.listed("prefill", "max_num_seqs", [256])[-1]
        for split, batch in product(self.splits(), self.matching.get("prefill_batches", [1])):
            covering = [budget for budget in budgets if budget >= batch * self.isl]
            if not covering or batch > most:
                continue
            kv = self.silicon.kv_tokens(sku, split, covering[0])
            if not self.holds_longest(kv) or batch * self.isl > kv:
                continue
            latency = 1.1 * self.silicon.prefill_ms(sku, split, batch)
            rate = 0.9 * 1000 * batch * split[1] / latency
            yield Row(sku, split, batch, covering[0], kv, rate, 1.8 * latency, 0.0)

    def decode_rows(self, sku: str) -> Iterator[Row]:
        """TPOT = 1.08 * decode time / (osl - 1), 0.92 of 1000 * b * ranks / (TPOT * (osl - 1))."""
        most = self.listed("decode", "max_num_seqs", [1024])[-1]
        budgets = self.listed("decode", "max_num_batched_tokens", [8192])
        for split, batch in product(self.splits(), GRID):
            covering = [budget for budget in budgets if budget >= batch]
            if not covering:
                continue
            kv = self.silicon.kv_tokens(sku, split, covering[0])
            if batch not in self.batches(kv, most):
                continue
            if self.osl == 1:
                yield Row(sku, split, batch, covering[0], kv, math.inf, 0.0, 0.0)
                continue
            total = 1.08 * self.silicon.decode_total_ms(sku, split, batch, self.osl)
            rate = 0.92 * 1000 * batch * split[1] / total
            yield Row(sku, split, batch, covering[0], kv, rate, 0.0, total / (self.osl - 1))

    def agg_rows(self, sku: str) -> Iterator[Row]:
        """Each batch with each pass; vLLM's budget holds the decoding sequences too (docs/decisions.md)."""
        listed = self.space.get("agg_max_num_batched_tokens")
        fine = () if listed else (512, 1024, 2048, 4096, self.isl, 2 * self.isl)
        most = self.listed("agg", "max_num_seqs", [1024])[-1]
        for split, batch in product(self.splits(), GRID):
            beside = batch if self.backend == "vllm" else 0
            # the KV cache of a small pass is that beside the most sequences, which is at most 512 tokens wider
            widest = {ctx + beside: ctx + (GRID[-1] if beside else 0) for ctx in fine}
            for budget in sorted({*(listed or (8192, 16384, 32768)), *widest}):
                kv, ctx = self.silicon.kv_tokens(sku, split, widest.get(budget, budget)), budget - beside
                # the prompts of a pass come from the batch, and one more request decodes
                steady = ctx >= 1 and math.ceil(ctx / self.isl) + (batch > 1) <= batch
                if batch not in self.batches(kv, min(most, budget)) or not steady:
                    continue
                ttft, tpot, rate = self.silicon.aggregated(sku, split, batch, ctx, self.osl)
                # Little's law: slots = rate * latency; what is missing is a wait (docs/decisions.md)
                slots, latency = batch * split[1], ttft + tpot * (self.osl - 1)
                rate = min(rate, 1000 * slots / latency)
                wait = max(1000 * slots / rate - latency, 0.0)
                yield Row(sku, split, batch, budget, kv, rate, ttft + wait, tpot)

    def counts(self, topology: str, rows: tuple[Row, ...]) -> Iterator[tuple[int, ...]]:
        """Worker counts within the budget, the minimum, the caps of types and of pools, each alone."""
        budget, least = self.gpu["budget"], self.gpu.get("minBudget", 1)
        pools = ("prefill", "decode") if topology == "disagg" else ("agg",)
        for workers in product(*(range(1, budget // row.gpus + 1) for row in rows)):
            gpus = [row.gpus * count for row, count in zip(rows, workers, strict=True)]
            if not least <= sum(gpus) <= budget:
                continue
            by_sku: dict[str, int] = {}
            for row, used in zip(rows, gpus, strict=True):
                by_sku[row.sku] = by_sku.get(row.sku, 0) + used
            if any(used > self.gpu.get("budgetBySku", {}).get(sku, used) for sku, used in by_sku.items()):
                continue
            if any(used > (self.space.get(f"max_{pool}_gpus") or used) for pool, used in zip(pools, gpus, strict=True)):
                continue
            if any(n > (self.space.get(f"max_{pool}_workers") or n) for pool, n in zip(pools, workers, strict=True)):
                continue
            yield workers

    def ratios(self) -> list[float | None]:
        """KV load ratios; a range is five, geometric."""
        if "kvLoadRatio" in self.load:
            return [self.load["kvLoadRatio"]]
        if "kvLoadRatioRange" in self.load:
            low, high = self.load["kvLoadRatioRange"]["min"], self.load["kvLoadRatioRange"]["max"]
            return [low, *(low * (high / low) ** (k / 4) for k in (1, 2, 3)), high]
        return [None]

    def loaded(
        self, topology: str, rows: tuple[Row, ...], workers: tuple[int, ...], ratio: float | None
    ) -> Iterator[Served]:
        """The deployment under the load, if it carries it and keeps the strict bounds."""
        first, last = rows[0], rows[-1]
        capacity = min(row.rate * count for row, count in zip(rows, workers, strict=True))
        ttft, tpot = first.ttft, last.tpot
        latency = ttft + tpot * (self.osl - 1)
        concurrency: int | None = self.load.get("concurrency")
        if ratio is not None:
            held = last.kv_tokens // self.block * self.block * last.ranks * workers[-1]
            at_once = held // (self.isl + self.osl // 2)
            if at_once < 1:
                return
            concurrency = max(1, math.floor(Fraction(str(ratio)) * at_once))
        rate = capacity
        if concurrency is not None:
            if last.batch * last.ranks * workers[-1] < concurrency:
                return
            rate = min(capacity, 1000 * concurrency / latency)
            ttft += max(1000 * concurrency / rate - latency, 0.0)
        elif "requestRate" in self.load:
            rate = self.load["requestRate"]
            if capacity < rate * (1 - TIE):
                return
        sla = self.request["objective"].get("sla") or {}
        e2e = ttft + tpot * (self.osl - 1)
        kept = at_most(ttft, sla.get("ttftMs")) and at_most(tpot, sla.get("itlMs")) and at_most(e2e, sla.get("e2eMs"))
        if not kept and sla.get("strict", True):
            return
        prices = self.request["objective"].get("gpuHourCost", {})
        cost = sum(prices.get(row.sku, 1.0) * row.gpus * n for row, n in zip(rows, workers, strict=True))
        yield Served(topology, rows, workers, self.osl, cost, rate, ttft, tpot, concurrency, late=not kept)


def front(vectors: set[tuple[float, ...]]) -> set[tuple[float, ...]]:
    """Those that no other is at least as good as in all and better in one."""
    return {
        mine
        for mine in vectors
        if not any(other != mine and all(a >= b for a, b in zip(other, mine, strict=True)) for other in vectors)
    }


@cache
def pick(seed: int, what: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    """A choice that depends on nothing but its arguments."""
    return Random(repr((seed, what))).choice(options)  # noqa: S311 - test data
