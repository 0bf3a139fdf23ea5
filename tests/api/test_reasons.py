import re
from pathlib import Path
from typing import get_args

import pytest
from dgdr_api import reasons
from dgdr_api.conditions import condition, cut
from dgdr_api.reasons import HONEST_OUTCOMES, REASONS, reason_named, reasons_of
from dgdr_api.terms import Outcome

SPECIFICATION = Path(__file__).resolve().parents[3] / "shared" / "api.md"
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"


def test_every_reason_is_one_word_with_one_line() -> None:
    for reason in REASONS:
        assert re.fullmatch(r"([A-Z][a-z0-9]*)+", reason.name)
        assert reason.meaning.endswith(".")
        assert "\n" not in reason.meaning
        assert len(reason.meaning) < 120
    assert len({(reason.type, reason.name) for reason in REASONS}) == len(REASONS)


def test_outcomes_are_reasons_of_completed() -> None:
    assert set(get_args(Outcome)) == HONEST_OUTCOMES
    assert all(reason_named("Completed", name).status == "True" for name in HONEST_OUTCOMES)


def test_reasons_of_the_specification() -> None:
    if not SPECIFICATION.is_file():
        pytest.skip("the specification is not beside the repository")
    text = SPECIFICATION.read_text("utf-8")

    missing = [
        reason.name
        for reason in REASONS
        if reason.type not in ("Supported", "Materialized") and reason.name not in text
    ]

    assert missing == []


def test_an_unknown_reason_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="VersionBound has no reason Maybe; it has Bound, BoundWithBorrowedData"):
        reason_named("VersionBound", "Maybe")
    assert next(reasons_of("Accepted")).name == "RunCreated"


def test_the_time_moves_only_with_the_status() -> None:
    pending = condition(reasons.PENDING, "waits", now=NOW)
    preflight = condition(reasons.PREFLIGHT, "looks", now=LATER, previous=[pending])
    done = condition(reasons.SEARCH_SUCCEEDED, "done", now=LATER, previous=[preflight], generation=2)

    assert (preflight.reason, preflight.last_transition_time) == ("Preflight", NOW)
    assert (done.status, done.last_transition_time, done.observed_generation) == ("True", LATER, 2)


def test_a_short_text_is_not_cut() -> None:
    assert cut("äöü", 6) == "äöü"
    assert cut("äöüä", 7) == "äö..."
