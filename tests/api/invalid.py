"""What an invalid request is to the tests: what is changed, the field that is blamed, what both sides say."""

from dataclasses import dataclass
from typing import Any

from tests.api.objects import request


@dataclass(frozen=True)
class Invalid:
    id: str
    changes: tuple[tuple[str, Any], ...]
    field: str
    """From spec on, as both sides name it."""
    laptop: str
    """Part of the laptop's message."""
    cluster: str
    """Part of the API server's message; for a rule the same text."""
    base: dict[str, Any] | None = None
    cluster_field: str = ""
    """As the API server names it, where a rule stands below the key of a map: ``nodeSelector[h200]``."""

    @property
    def object(self) -> dict[str, Any]:
        return request(*self.changes) if self.base is None else self.base


def rule(id: str, field: str, message: str, *changes: tuple[str, Any]) -> Invalid:  # noqa: A002
    return Invalid(id, changes, field, message, message)


def schema(id: str, field: str, laptop: str, cluster: str, *changes: tuple[str, Any]) -> Invalid:  # noqa: A002
    return Invalid(id, changes, field, laptop, cluster)
