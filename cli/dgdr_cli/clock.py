"""The clock of a laptop's search."""

from datetime import UTC, datetime


def now() -> str:
    """The time now: UTC, RFC 3339, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
