"""The time, in the forms that Kubernetes writes."""

from datetime import UTC, datetime


def utc_now() -> str:
    """Return the time in whole seconds: conditions and Events."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_now_micro() -> str:
    """Return the time in microseconds: leases."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
