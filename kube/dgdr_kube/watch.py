"""What a watch says: one JSON line a change."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from dgdr_kube.errors import Retryable, error_of

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True)
class Change:
    """One change of a collection."""

    type: ChangeType
    """BOOKMARK: nothing changed, the watch has come to this resourceVersion."""
    object: dict[str, Any]
    """The object after the change, or before its deletion; of a bookmark only its resourceVersion counts."""

    @property
    def resource_version(self) -> str:
        """State of the collection after the change: a watch can go on from here."""
        return str(self.object["metadata"]["resourceVersion"])


def change_of(asked: str, line: str) -> Change:
    """Read a line of a watch.

    Args:
        asked: verb and path of the request.
        line: the line.

    Raises:
        KubeError: the server ends the watch with an error; `NotFound` with status 410 where the state it should start
            from is too old.
        Retryable: the line is no change.
    """
    try:
        event = json.loads(line)
        kind, value = event["type"], event["object"]
        if kind == "ERROR":
            raise error_of(asked, int(value.get("code") or 500), json.dumps(value))
        change = Change(cast("ChangeType", kind), value)
        change.resource_version  # noqa: B018 - whether it has one
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Retryable(asked, f"a line of the watch is no change: {line[:200]}") from error
    return change


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """Cut a stream of bytes into its lines; what follows the last line break is not yielded: it is not whole."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines if line.strip())
