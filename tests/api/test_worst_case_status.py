"""A run's status stays below 32 KiB and a candidate's below what etcd takes, every bound at its limit."""

from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.canonical import canonical_json
from dgdr_api.conditions import condition
from dgdr_api.events import Counters
from dgdr_api.reasons import REASONS, reasons_of
from dgdr_api.run import RunStatus
from dgdr_api.terms import BACKENDS

NOW = "2026-01-01T00:00:00.000000000Z"


def worst_run_status() -> dict[str, Any]:
    wide = "\N{GRINNING FACE}" * 2000
    types = ("Supported", "VersionBound", "Published", "Completed")
    on_a_run = [max(reasons_of(name), key=lambda reason: len(reason.name)) for name in types]
    conditions = [wire(condition(reason, wide, now=NOW, generation=2**31)) for reason in on_a_run]
    big = 2**53 - 1
    share = 0.12345678901234567
    return {
        "phase": "Succeeded",
        "conditions": conditions,
        "jobRef": {"name": "j" * 253, "uid": "u" * 63},
        "outcome": {"reason": "NoFeasibleCandidate", "message": conditions[0]["message"], "time": NOW},
        "progress": {
            "summary": "9" * 63,
            "branches": [
                {"name": f"{index:063}", "rounds": {"completed": big, "total": big}, "pool": big} for index in range(16)
            ],
            "evaluations": {field.alias: big for field in Counters.model_fields.values()},
            "candidates": {"paretoFront": big, "published": big, "unrenderable": big},
            "provenBest": False,
            "etaSeconds": 123456789.12345678,
        },
        "best": {
            "score": -1.2345678901234567e-300, "display": "d" * 63, "usedGpus": 2**31 - 1, "mode": "disagg",
            "backend": "sglang", "summary": "s" * 512,
        },
        "candidateRefs": [{"name": f"{index:0253}"} for index in range(50)],
        "versions": [
            {
                "backend": backend, "sku": f"{index:063}", "runtime": "r" * 63, "engine": "e" * 63,
                "performanceData": "p" * 63, "renderer": "t" * 63,
            }
            for backend in BACKENDS
            for index in range(3)
        ],
        "reportRef": {"name": "r" * 253},
        "provenance": {
            "sweeperVersion": "v" * 63, "performanceModelVersion": "v" * 63, "seed": 2**63 - 1,
            "data": dict.fromkeys(("silicon", "empirical", "estimated", "borrowed"), share),
        },
        "startTime": NOW,
        "completionTime": NOW,
        "lastProgressTime": NOW,
        "message": conditions[0]["message"],
    }  # fmt: skip


def test_the_worst_run_status_is_valid_and_below_32_kib() -> None:
    worst = worst_run_status()

    RunStatus.model_validate(worst)

    assert 20_000 < len(canonical_json(worst).encode()) < 32 * 1024


@pytest.mark.parametrize("text", ["a" * 5000, "\N{GRINNING FACE}" * 500, "ä" * 513])
def test_a_message_is_cut_to_1024_bytes_between_characters(text: str) -> None:
    message = condition(REASONS[0], text, now=NOW).message

    assert len(message.encode()) <= 1024
    assert len(message.encode()) > 1020
    assert message.endswith("...")
    assert text.startswith(message.removesuffix("..."))
