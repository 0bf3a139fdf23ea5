"""The coverage page is what the command prints today."""

from docs.coverage_page import PAGE, coverage_page


def test_the_page_is_what_the_command_prints() -> None:
    assert PAGE.read_text() == coverage_page(), "docs/coverage.md is stale: make coverage"
