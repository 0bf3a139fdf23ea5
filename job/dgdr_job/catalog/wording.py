"""The performance model's refusals in one short sentence: which table, which key, and what would do.

Its own texts are written for its developers: they print native structures and paths of its package. What is not known
here passes as it is, without its prefix.
"""

import re

_PREFIX = "perf database error: "
_MISSING = re.compile(
    r"(?P<table>.+?)(?: perf)? data missing for (?P<key>.+?)(?: at systems/\S+?)?(?:; available: \[(?P<having>.*)\])?"
)
_STRUCTURE = re.compile(r"\w+ \{ (?P<fields>.*) \}")
_NUMBER_FORMAT = re.compile(r"missing system flops: quant mode '(?P<quant>\w+)' needs '(?P<dtype>\w+)_tc_flops'.*")


def sentence(text: str) -> str:
    """One line of the performance model as a person reads it."""
    text = text.removeprefix(_PREFIX)
    found = _MISSING.fullmatch(text)
    if found is not None:
        having = f", only for {_key(found['having'])}" if found["having"] else ""
        return (
            f"the {found['table']} table has no row for {_key(found['key'])}{having}; another backend, GPU type or "
            "data version may have one (dgdr coverage)"
        )
    found = _NUMBER_FORMAT.fullmatch(text)
    if found is not None:
        return (
            f"{found['quant']} computes in {found['dtype']}, which this GPU type does not; "
            "use a checkpoint of another number format, or another GPU type"
        )
    return text


def _key(text: str) -> str:
    """``MoeKey { quant: "fp8", topk: 22 }`` as ``quant fp8, topk 22``."""
    structure = _STRUCTURE.fullmatch(text)
    fields = text if structure is None else structure["fields"].replace(": ", " ")
    return fields.replace('"', "").replace("'", "")
