"""Canonical JSON and the hashes made of it: the one form in which equal values are equal bytes."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class NotCanonicalError(ValueError):
    """A value that has no canonical form, named by its JSON pointer."""


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no white space, UTF-8; integral floats as integers, -0 as 0.

    Raises:
        NotCanonicalError: a non-finite number, an integer beyond int64, a key that is no string, or no JSON type.
    """
    return json.dumps(_normal(value, ""), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_hex(value: object, digits: int = 64) -> str:
    """The first ``digits`` hex digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:digits]


def _normal(value: object, pointer: str) -> object:
    match value:
        case None | bool() | str():
            return value
        case int():
            if not INT64_MIN <= value <= INT64_MAX:
                raise NotCanonicalError(f"{pointer or '/'}: {value} does not fit in 64 bits")
            return value
        case float():
            if not math.isfinite(value):
                raise NotCanonicalError(f"{pointer or '/'}: {value} is not a finite number")
            return _normal(int(value), pointer) if value.is_integer() else value
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise NotCanonicalError(f"{pointer or '/'}: key {key!r} is no string")
            return {key: _normal(item, f"{pointer}/{key}") for key, item in value.items()}
        case Sequence():
            return [_normal(item, f"{pointer}/{index}") for index, item in enumerate(value)]
        case _:
            raise NotCanonicalError(f"{pointer or '/'}: {type(value).__name__} is no JSON type")
