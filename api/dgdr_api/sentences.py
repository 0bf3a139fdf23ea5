"""pydantic's errors in our own words: what is wrong, the bound that was checked, what would do."""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from dgdr_api.annotations import below, fields_of
from dgdr_api.errors import Problem
from dgdr_api.rules import BROKEN_RULES

_SHOWN = 60
_CLOSE = 0.6


def problems(model: type[BaseModel], errors: list[ErrorDetails]) -> list[Problem]:
    """Translate the errors of one validation of ``model``."""
    return [problem for error in errors if not _follows(error, errors) for problem in _problems(model, error)]


def path_of(location: tuple[int | str, ...]) -> str:
    """``("spec", "backends", 1)`` is ``spec.backends[1]``."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]":
            path += f".{part}" if path else part
    return path


def shown(value: object) -> str:
    """A value as the user wrote it, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _follows(error: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """Whether a list only seems too short because pydantic left out its invalid items."""
    place = error["loc"]
    return error["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in errors
    )


def _problems(model: type[BaseModel], error: ErrorDetails) -> Iterator[Problem]:
    location = error["loc"]
    value = error["input"]
    if error["type"] == BROKEN_RULES:
        found = f", found {shown(value)}" if isinstance(value, str) else ""
        for field, said in error["ctx"]["broken"]:
            yield Problem(path_of(location) + field, said + found)
        return
    if error["type"] == "extra_forbidden":
        yield Problem(path_of(location), _unknown_key(model, location), value)
        return
    if value is None and error["type"] != "missing":
        yield Problem(path_of(location), "is null; give a value")
        return
    sentence = _SENTENCES.get(error["type"])
    context = error.get("ctx", {})
    said = sentence(value, context) if sentence is not None else f"{error['msg']}, found {shown(value)}"
    yield Problem(path_of(location), said, None if error["type"] == "missing" else value)


def _unknown_key(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    names = list(fields_of(below(model, location[:-1])))
    key = str(location[-1])
    folded = {name.lower(): name for name in names}
    near = [folded[name] for name in difflib.get_close_matches(key.lower(), folded, n=2, cutoff=_CLOSE)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names)}"
    return f"unknown field; {hint}"


def _typed(wanted: str) -> Callable[[object, Mapping[str, Any]], str]:
    return lambda value, _: f"must be {wanted}, found {shown(value)}"


def _words(expected: str) -> str:
    """``'a', 'b' or 'c'`` without quotes, and booleans as YAML writes them."""
    return expected.replace("'", "").replace("True", "true").replace("False", "false")


_SENTENCES: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = MappingProxyType(
    {
        "missing": lambda _, __: "is required",
        "string_type": lambda value, _: (
            f"must be a text, found {shown(value)}" + ("" if isinstance(value, list | dict) else "; put it in quotes")
        ),
        "int_type": _typed("a whole number"),
        "int_from_float": _typed("a whole number"),
        "int_parsing_size": _typed("a whole number of at most 64 bits"),
        "float_type": _typed("a number"),
        "finite_number": _typed("a finite number"),
        "bool_type": _typed("true or false"),
        "tuple_type": _typed("a list"),
        "list_type": _typed("a list"),
        "dict_type": _typed("a mapping"),
        "model_type": _typed("a mapping"),
        "model_attributes_type": _typed("a mapping"),
        "literal_error": lambda value, ctx: f"must be {_words(ctx['expected'])}, found {shown(value)}",
        "string_too_short": lambda value, ctx: (
            "must not be empty" if not value else f"has {len(value)} characters, needs at least {ctx['min_length']}"
        ),
        "string_too_long": lambda value, ctx: f"has {len(value)} characters, at most {ctx['max_length']} fit",
        "string_pattern_mismatch": lambda value, ctx: f"must match {ctx['pattern']}, found {shown(value)}",
        "greater_than": lambda value, ctx: f"must be greater than {ctx['gt']:g}, found {shown(value)}",
        "greater_than_equal": lambda value, ctx: f"must be at least {ctx['ge']:.16g}, found {shown(value)}",
        "less_than": lambda value, ctx: f"must be less than {ctx['lt']:.16g}, found {shown(value)}",
        "less_than_equal": lambda value, ctx: f"must be at most {ctx['le']:.16g}, found {shown(value)}",
        "too_short": lambda _, ctx: f"has {ctx['actual_length']} entries, needs at least {ctx['min_length']}",
        "too_long": lambda value, ctx: f"has {len(value)} entries, takes at most {ctx['max_length']}",
        "duplicate": lambda _, ctx: f"{ctx['item']} stands twice; no value may be given twice",
        "value_error": lambda _, ctx: str(ctx["error"]),
        "union_tag_invalid": lambda _, ctx: f"{ctx['discriminator']} must be one of {ctx['expected_tags']}",
        "union_tag_not_found": lambda _, ctx: f"{ctx['discriminator']} is required",
    }
)
