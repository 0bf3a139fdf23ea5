"""Reading objects of the cluster as they are: what another version of us wrote has other fields, and is shown too."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dgdr_api.canonical import NotCanonicalError, canonical_json

Object = Mapping[str, Any]

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_ENOUGH = 3
"""From this many of a unit on a smaller one would say nothing."""


def at(value: Any, *path: str, default: Any = None) -> Any:  # noqa: ANN401 - any JSON value
    """What stands at a path of an object; the default where something on the way is missing or of another type."""
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return default
        value = value[step]
    return default if value is None else value


def text_at(value: Any, *path: str) -> str:  # noqa: ANN401 - any JSON value
    """The text, or the number as text, at a path of an object; empty where there is none."""
    found = at(value, *path, default="")
    return str(found) if isinstance(found, str | int | float) else ""


def list_at(value: Any, *path: str) -> list[Any]:  # noqa: ANN401 - any JSON value
    """The list at a path of an object; empty where there is none."""
    found = at(value, *path, default=[])
    return found if isinstance(found, list) else []


def name_of(value: Object) -> str:
    """Name of an object."""
    return text_at(value, "metadata", "name")


def refs(value: Object, field: str) -> list[str]:
    """Names in a list of references of the status, in their order."""
    return [name for ref in list_at(value, "status", field) if (name := text_at(ref, "name"))]


def controller(value: Object) -> Object:
    """The owner reference of the object that manages this one; empty: none does."""
    owners = list_at(value, "metadata", "ownerReferences")
    return next((owner for owner in owners if isinstance(owner, Mapping) and owner.get("controller")), {})


def condition(value: Object, type: str) -> Object:  # noqa: A002 - its name in the API
    """A condition of an object; empty: it has none of this type."""
    found = list_at(value, "status", "conditions")
    return next((one for one in found if isinstance(one, Mapping) and one.get("type") == type), {})


def completed(run: Object) -> Object | None:
    """The condition Completed of a run that has ended; None: it goes on."""
    found = condition(run, "Completed")
    return found if found.get("status") == "True" else None


def age(value: Object, now: datetime | None = None) -> str:
    """How long ago an object was created, in the one or two units that matter, e.g. ``2h5m`` or ``9d``."""
    try:
        created = datetime.fromisoformat(text_at(value, "metadata", "creationTimestamp"))
        seconds = max(int(((now or datetime.now(UTC)) - created).total_seconds()), 0)
    except (ValueError, TypeError):
        return ""
    for place, (size, unit) in enumerate(_UNITS):
        if seconds >= size or size == 1:
            whole, rest = divmod(seconds, size)
            smaller = _UNITS[place + 1] if place + 1 < len(_UNITS) else None
            more = rest // smaller[0] if smaller is not None else 0
            return f"{whole}{unit}{more}{smaller[1]}" if smaller and more and whole < _ENOUGH else f"{whole}{unit}"
    raise AssertionError  # the last unit takes everything


def json_text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A value as canonical JSON; one that has no canonical form, as a number beyond 64 bits, as it is."""
    try:
        return canonical_json(value)
    except NotCanonicalError:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def without_managed_fields(value: Object) -> dict[str, Any]:
    """An object as it is printed: without the table of who owns which field."""
    meta = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    return {**value, "metadata": meta}
