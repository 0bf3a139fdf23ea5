"""Text to a plain value: one YAML or JSON document, bounded, with nothing in it that means two things.

YAML's aliases, tags and repeated keys are refused; ``yes``, ``1:30`` and dates are strings, as in JSON-compatible YAML.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import yaml

from dgdr_api.errors import InvalidRequest, Problem

MAX_TEXT_BYTES = 1024 * 1024
MAX_DEPTH = 64


def read_document(text: str) -> dict[str, Any]:
    """Read one mapping from YAML or JSON.

    Raises:
        InvalidRequest: the text is too large, no YAML, no mapping, more than one document, nested too deeply, or it
            repeats a key, or uses an alias or a tag. The message names line and column.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise _refused(f"the text has {size:,} bytes; at most {MAX_TEXT_BYTES:,} are read")
    try:
        _check_events(yaml.parse(text, Loader=_Loader))
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _refused(f"no valid YAML: {_where(error.problem_mark)}{error.problem or error}") from error
    except yaml.YAMLError as error:
        raise _refused(f"no valid YAML: {str(error).splitlines()[0]}") from error
    value = None if node is None else _value(node, "")
    if not isinstance(value, dict):
        raise _refused(f"expected a mapping with apiVersion, kind, metadata and spec, found {_kind(value)}")
    return value


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml is ten times as fast
    """Resolves scalars as JSON would: null, true and false, integers, floats; all else is a string."""


_Loader.yaml_implicit_resolvers = {}
_NUMBER_STARTS = list("-+.0123456789")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
for _tag, _pattern, _starts in (
    ("null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")),
    ("int", re.compile(r"(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)\Z"), _NUMBER_STARTS),
    ("float", re.compile(rf"(?:{_FLOAT.pattern})\Z"), _NUMBER_STARTS),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _starts)


def _check_events(events: Iterable[yaml.Event]) -> None:
    """Refuse what must not reach the composer: it would recurse, or expand a small text to a large value."""
    depth = documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _refused(f"{_where(event.start_mark)}a second document; give one request per file")
        elif isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _refused(f"{_where(event.start_mark)}anchors and aliases are not accepted; write the value out")
        elif isinstance(event, yaml.NodeEvent) and (tag := getattr(event, "tag", None)) not in (None, "!"):
            raise _refused(f"{_where(event.start_mark)}tags such as {tag} are not accepted")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _refused(f"{_where(event.start_mark)}nested more than {MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _value(node: yaml.Node, path: str) -> Any:  # noqa: ANN401
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
    return _scalar(node, path)


def _mapping(node: yaml.MappingNode, path: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _refused(f"{_where(key_node.start_mark)}a key must be a text, not a list or a mapping", path)
        key = str(key_node.value)
        below = f"{path}.{key}" if path else key
        if key in made:
            raise _refused(f"{_where(key_node.start_mark)}key {key} stands twice in one mapping", below)
        made[key] = _value(value_node, below)
    return made


def _scalar(node: yaml.Node, path: str) -> Any:  # noqa: ANN401
    text = str(node.value)
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return _integer(text, node, path)
        case "float":
            return float(text.replace(".inf", "inf").replace(".nan", "nan") if text.lower()[-3:] in _WORDS else text)
        case _:
            return text


_WORDS = frozenset({"inf", "nan"})
_MOST_DIGITS = 20
"""More than any 64-bit number has; longer ones are not even converted."""


def _integer(text: str, node: yaml.Node, path: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _refused(f"{_where(node.start_mark)}the number {text[:_MOST_DIGITS]}... does not fit in 64 bits", path)
    return int(text, 16) if text.startswith("0x") else int(text)


def _kind(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case list():
            return "a list"
        case _:
            return json.dumps(value)[:60]


def _where(mark: Any) -> str:  # noqa: ANN401 - the two parsers of PyYAML have a class of marks each
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "


def _refused(message: str, field: str = "") -> InvalidRequest:
    return InvalidRequest([Problem(field, message)])
