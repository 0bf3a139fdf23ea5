"""What is wrong with keys and values of the configuration, in our own words: where, which bound, what was found."""

import difflib
import json
from collections.abc import Mapping
from typing import Any

from dgdr_api.errors import InvalidRequest, Problem
from pydantic import BaseModel
from pydantic_core import ErrorDetails

BOUND_TEXTS: dict[str, str] = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "has {actual_length} values, at least {min_length} are needed",
    "too_long": "has {actual_length} values, at most {max_length} are allowed",
    "string_too_short": "must not be empty",
    "extra_forbidden": "is no key of the engine",
    "finite_number": "must be a finite number",
    "literal_error": "must be {expected}",
}
"""Our words for a bound that a value breaks, by pydantic's name of the fault; the braces are the bound itself."""
TYPE_TEXTS: tuple[tuple[str, str], ...] = (
    ("int", "must be a whole number"),
    ("float", "must be a number"),
    ("bool", "must be true or false"),
    ("tuple", "must be a list"),
    ("string", "must be a text"),
    ("dict", "must be an object"),
    ("model", "must be an object"),
)
"""Our words for a value of another type, by the start of pydantic's name of the fault."""
SHOWN_CHARACTERS = 80
"""A wrong value is shown up to here."""


def check_keys(
    model: type[BaseModel], given: Mapping[str, Any], *, prefix: str = "", owner: Mapping[str, str] | None = None
) -> None:
    """Refuse keys that do not exist, with their neighbours, and those that another place sets, naming it.

    Args:
        model: the part of the configuration.
        given: its keys and values, not validated yet.
        prefix: where the configuration stands in what a person wrote; begins each field.
        owner: place by the key that it sets; a key with dots leads into parts.

    Raises:
        InvalidRequest: the first such key.
    """
    _check_keys(model, given, "", prefix, owner or {})


def _check_keys(
    model: type[BaseModel], given: Mapping[str, Any], path: str, prefix: str, owner: Mapping[str, str]
) -> None:
    for key, value in given.items():
        name = f"{path}{key}"
        if name in owner:
            raise InvalidRequest(
                [Problem(f"{prefix}{name}", f"is set by {owner[name]}; change that field instead", value)]
            )
        field = model.model_fields.get(key)
        if field is None:
            near = difflib.get_close_matches(key, model.model_fields, n=3)
            known = ", ".join(near or model.model_fields)
            message = f"is no key of the engine; {'near' if near else 'known'}: {known}"
            raise InvalidRequest([Problem(f"{prefix}{name}", message, value)])
        part = part_of(field.annotation)
        if part is not None and value is not None:
            if not isinstance(value, Mapping):
                raise InvalidRequest([Problem(f"{prefix}{name}", "must be an object", value)])
            _check_keys(part, value, f"{name}.", prefix, owner)


def part_of(annotation: object) -> type[BaseModel] | None:
    """The part of the configuration that a field holds, where the part is one of this room's."""
    for found in (annotation, *getattr(annotation, "__args__", ())):
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            continue
        if found.model_config.get("alias_generator") is None:
            return found
    return None


def problems(details: list[ErrorDetails], *, prefix: str = "") -> list[Problem]:
    """What is wrong; a fault of a list that follows from a fault of one of its values is left out."""
    places = [detail["loc"] for detail in details]
    return [
        _problem(detail, prefix)
        for detail in details
        if not any(place != detail["loc"] and place[: len(detail["loc"])] == detail["loc"] for place in places)
    ]


def _problem(detail: ErrorDetails, prefix: str) -> Problem:
    kind, bounds = detail["type"], detail.get("ctx", {})
    field = prefix + ".".join(str(part) for part in detail["loc"] if part != "[key]")
    if kind == "missing":
        return Problem(field, "is required")
    if kind == "value_error":
        return Problem(field, str(bounds["error"]), detail["input"])
    if kind in BOUND_TEXTS:
        text = BOUND_TEXTS[kind].format(
            **{name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in bounds.items()}
        )
    else:
        text = next((words for start, words in TYPE_TEXTS if kind.startswith(start)), f"is not allowed ({kind})")
    text = text.replace("'", "")  # around the values of a vocabulary
    found = json.dumps(detail["input"], default=str)
    shown = found if len(found) <= SHOWN_CHARACTERS else f"{found[:SHOWN_CHARACTERS]}..."
    return Problem(field, f"{text}, found {shown}", detail["input"])
