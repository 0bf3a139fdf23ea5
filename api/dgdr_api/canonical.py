"""Canonical JSON and the hashes made of it: the one form in which equal values are equal bytes."""

import hashlib
import json
import math
from collections.abc import Mapping

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_MOST_BITS_SHOWN = 96


class NotCanonicalError(ValueError):
    """A value that has no canonical form, named by its JSON pointer."""

    def __init__(self, pointer: str, problem: str) -> None:
        self.pointer = pointer
        """JSON pointer of the value; empty for the whole."""
        self.problem = problem
        super().__init__(f"{pointer or '/'}: {problem}")


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no white space, UTF-8; integral floats as integers, -0 as 0.

    Raises:
        NotCanonicalError: a non-finite number, an integer beyond int64, a text that UTF-8 cannot write, a key that is
            no string, or no JSON type.
    """
    return json.dumps(_normal(value, ""), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_hex(value: object, digits: int = 64) -> str:
    """The first ``digits`` hex digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:digits]


def _normal(value: object, pointer: str) -> object:
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, pointer)
        case int():
            if not INT64_MIN <= value <= INT64_MAX:
                raise NotCanonicalError(pointer, f"{_shown(value)} does not fit in 64 bits")
            return value
        case float():
            if not math.isfinite(value):
                raise NotCanonicalError(pointer, f"{value} is not a finite number")
            if not INT64_MIN <= value <= INT64_MAX:
                raise NotCanonicalError(pointer, f"{value:g} does not fit in 64 bits")
            return int(value) if value.is_integer() else value
        case Mapping():
            return _object(value, pointer)
        case list() | tuple():
            return [_normal(item, f"{pointer}/{index}") for index, item in enumerate(value)]
        case _:
            raise NotCanonicalError(pointer, f"{type(value).__name__} is no JSON type")


def _object(value: Mapping[object, object], pointer: str) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise NotCanonicalError(pointer, f"key {key!r} is no string")
        made[_text(key, pointer)] = _normal(item, f"{pointer}/{_escaped(key)}")
    return made


def _text(value: str, pointer: str) -> str:
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise NotCanonicalError(pointer, f"{value!r} holds half a surrogate pair, which UTF-8 cannot write")
    return value


def _shown(value: int) -> str:
    """A number that a person can read: no row of three hundred digits."""
    return str(value) if value.bit_length() <= _MOST_BITS_SHOWN else f"a number of {value.bit_length()} bits"


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
