"""Changing an object of a person, with a reason: exactly the object that was looked at."""

import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail

if TYPE_CHECKING:
    from dgdr_kube.resource import Object, Resource

    from dgdr_cli.cluster.options import Cluster

MOST_REASON = 1024
_ATTEMPTS = 5


def check_reason(reason: str) -> None:
    """End with exit 2 where the reason that a person gives says nothing, or is too long for its field."""
    size = len(reason.encode(errors="surrogateescape"))  # as it was typed: bytes that are no text stand for themselves
    if not reason.strip() or size > MOST_REASON:
        fail(WRONG_INPUT, f"--reason has {size:,} bytes: must be 1 to {MOST_REASON:,}, and not blank")
    if any(unicodedata.category(character) == "Cs" for character in reason):
        fail(WRONG_INPUT, f"--reason {reason!r}: must be UTF-8 text")


def patched(
    cluster: "Cluster",
    resource: "Resource",
    read: Callable[[], dict[str, Any]],
    change: Callable[["Object"], "Object"],
) -> dict[str, Any]:
    """Change an object as it was read, and no other: one that changed meanwhile is read and looked at again.

    Args:
        cluster: where it is.
        resource: its kind.
        read: reads it.
        change: the merge patch for what was read; ends the command where there must be none.
    """
    from dgdr_kube.errors import Stale

    for attempt in range(_ATTEMPTS):
        found = read()
        meta, patch = found["metadata"], change(found)
        guarded = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}}
        try:
            return cluster.kube.merge_patch(resource, cluster.namespace, meta["name"], guarded)
        except Stale:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError  # the last attempt raises
