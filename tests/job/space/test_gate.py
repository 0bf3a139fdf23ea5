"""The KV gate: the bound is exclusive, reasons carry the numbers, one shape without an estimate removes no other."""

from collections.abc import Mapping

import pytest
from dgdr_api.shape import Shape
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.space.gate import has_room, kv_gate
from dgdr_job.space.knobs import RoleKnobs

IDENTITY = PerfIdentity("model", "h200_sxm", "vllm", "0.24.0")
KNOBS = RoleKnobs((8192, 16384), (256,), (64,), (True,), (None, 0.9))
ONE, TWO = Shape(), Shape(tp=2)


class Memory(Catalog):
    """KV tokens by (tp, token budget, fraction); a reason where there is no estimate."""

    def __init__(self, tokens: Mapping[tuple[int, int, float | None], int | Reason]) -> None:
        self.tokens = tokens

    def kv(
        self, identity: PerfIdentity, shape: Shape, max_num_batched_tokens: int, memory_fraction: float | None = None
    ) -> KvEstimate:
        assert identity == IDENTITY
        found = self.tokens[shape.tp, max_num_batched_tokens, memory_fraction]
        if isinstance(found, Reason):
            raise Unsupported(found, f"no estimate of {shape.label}")
        return KvEstimate(found, 0.9, "of_total", max_num_batched_tokens, 141.0, 61.0, 1.0, 1.0, 1.0, 1000)


def test_exactly_the_longest_request_is_not_room() -> None:
    assert not has_room(3300, 3300)
    assert has_room(3301, 3300)


def test_the_least_demanding_knobs_decide() -> None:
    catalog = Memory({(1, 8192, None): 3300, (1, 8192, 0.9): 3301, (2, 8192, None): 3300, (2, 8192, 0.9): 10})
    gated = kv_gate(catalog, IDENTITY, (ONE, TWO), KNOBS, 3300)
    assert gated.kept == (ONE,)
    assert [out.detail for out in gated.removed] == [
        "tp2: 3,300 KV tokens per rank, more than 3,300 are needed for the longest request"
    ]


def test_a_budget_of_the_static_estimate_alone_can_make_room() -> None:
    knobs = RoleKnobs((8192,), (256,), (64,), (True,), (None,), ctx_tokens=(512, 4096))
    assert knobs.least_token_budget == 512
    assert kv_gate(Memory({(1, 512, None): 5000}), IDENTITY, (ONE,), knobs, 3300).kept == (ONE,)


def test_less_than_nothing_reads_as_nothing() -> None:
    knobs = RoleKnobs((8192,), (256,), (64,), (True,))
    gated = kv_gate(Memory({(1, 8192, None): -5}), IDENTITY, (ONE,), knobs, 10)
    assert gated.removed[0].detail.startswith("tp1: 0 KV tokens per rank")


def test_a_shape_without_an_estimate_is_passed_over() -> None:
    knobs = RoleKnobs((8192,), (256,), (64,), (True,))
    catalog = Memory({(1, 8192, None): Reason.NO_LEGAL_SHAPE, (2, 8192, None): 9999})
    gated = kv_gate(catalog, IDENTITY, (ONE, TWO), knobs, 3300)
    assert gated.kept == (TWO,)
    assert [(out.shape, out.error.reason) for out in gated.unestimated] == [(ONE, Reason.NO_LEGAL_SHAPE)]


def test_no_estimate_at_all_is_the_refusal_of_the_first_shape() -> None:
    knobs = RoleKnobs((8192,), (256,), (64,), (True,))
    catalog = Memory({(1, 8192, None): Reason.NO_DATA, (2, 8192, None): Reason.NO_LEGAL_SHAPE})
    with pytest.raises(Unsupported) as refused:
        kv_gate(catalog, IDENTITY, (ONE, TWO), knobs, 3300)
    assert refused.value.reason is Reason.NO_DATA
