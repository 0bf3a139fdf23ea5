"""YAML with one form per value: block style, no aliases, keys in the order given, ambiguous strings quoted.

YAML 1.1 reads ``y`` or ``off`` as booleans and ``1:30`` as a number, YAML 1.2 does not; a string is written plain
only when every reader takes it for a string.
"""

import re
from typing import Any, Literal

import yaml

_PLAIN = re.compile(r"-{0,2}[A-Za-z/][A-Za-z0-9_./@+-]*(:[A-Za-z0-9_./@+-]+)*")
_READ_AS_OTHERS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"})


class _Dumper(yaml.CSafeDumper):
    """Writes no anchors: equal parts are written out each time."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002 - signature of the base class
        return True


def _string(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _READ_AS_OTHERS
    style: Literal["'", '"'] | None = None if plain else "'" if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def yaml_text(document: object) -> str:
    """The YAML of a document of JSON types. Equal documents (with equal key order) are equal bytes."""
    return yaml.dump(
        document, Dumper=_Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=4096
    )
