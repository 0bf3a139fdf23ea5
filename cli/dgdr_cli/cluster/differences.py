"""In what two candidates differ, place by place. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from dgdr_api.identity import deployable

from dgdr_cli.cluster.objects import Object, at, json_text

ABSENT = None
"""Value of a side that has nothing at a place."""


@dataclass(frozen=True)
class Difference:
    """One place in which two values differ."""

    pointer: str
    """JSON pointer into the left object; into the right one, where only that has something there."""
    left: str | None
    """The value as JSON; None: nothing."""
    right: str | None
    option: str = ""
    """Of an argument list, the option whose value it is, e.g. ``--max-num-seqs``."""


@dataclass(frozen=True)
class CandidateDifferences:
    """In what two candidates differ."""

    parameters: tuple[Difference, ...]
    dgd: tuple[Difference, ...]
    metrics: tuple[Difference, ...]


def candidate_differences(left: Object, right: Object) -> CandidateDifferences:
    """Compare evaluation inputs, deployments and results of two candidates."""
    spec, other = at(left, "spec", default={}), at(right, "spec", default={})
    return CandidateDifferences(
        parameters=tuple(differences(spec.get("parameters"), other.get("parameters"), "/spec/parameters")),
        dgd=tuple(differences(deployable(spec), deployable(other), "/spec")),
        metrics=tuple(differences(_results(left), _results(right), "/status/evaluation")),
    )


def differences(left: Any, right: Any, pointer: str = "") -> Iterator[Difference]:  # noqa: ANN401 - any JSON values
    """Yield the places in which two values differ.

    Items of a list that have names are the same item under the same name; arguments are compared by their options.
    What only one side has is told field by field.
    """
    match _beside(left, right), _beside(right, left):
        case Mapping() as one, Mapping() as other:
            for key in dict.fromkeys([*one, *other]):
                place = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
                yield from differences(one.get(key, ABSENT), other.get(key, ABSENT), place)
        case list() as one, list() as other:
            yield from _of_lists(one, other, pointer)
        case one, other if json_text(one) != json_text(other):
            yield Difference(pointer, _shown(one), _shown(other))


def _beside(value: Any, other: Any) -> Any:  # noqa: ANN401 - any JSON values
    """The value; where it is absent beside a mapping or list that holds something, an empty one."""
    return type(other)() if value is ABSENT and isinstance(other, dict | list) and other else value


def _of_lists(left: list[Any], right: list[Any], pointer: str) -> Iterator[Difference]:
    options, others = _options(left), _options(right)
    if _named(left) and _named(right):
        places, more = _by_name(left), _by_name(right)
        for name in dict.fromkeys([*places, *more]):
            index = places.get(name, more.get(name, 0))
            yield from differences(_item(left, places, name), _item(right, more, name), f"{pointer}/{index}")
    elif options is not None and others is not None:
        for option in dict.fromkeys([*options, *others]):
            yield from _option(option, options.get(option), others.get(option), pointer)
    else:
        for index, (one, another) in enumerate(zip_longest(left, right, fillvalue=ABSENT)):
            yield from differences(one, another, f"{pointer}/{index}")


def _option(
    option: str, left: tuple[int, str | None] | None, right: tuple[int, str | None] | None, pointer: str
) -> Iterator[Difference]:
    """The difference in one option: its place is that of its value, if it has one."""
    if left is not None and right is not None and left[1] == right[1]:
        return
    index, value = left or right or (0, None)
    yield Difference(f"{pointer}/{index + (value is not None)}", _given(left), _given(right), option)


def _given(found: tuple[int, str | None] | None) -> str | None:
    """The value of an option; one that takes none is ``set``."""
    if found is None:
        return None
    return "set" if found[1] is None else json_text(found[1])


def _results(candidate: Object) -> dict[str, Any]:
    found = at(candidate, "status", "evaluation", default={})
    return {name: at(found, name) for name in ("score", "usedGpus", "objectives", "metrics")}


def _named(items: list[Any]) -> bool:
    names = [item["name"] for item in items if isinstance(item, Mapping) and isinstance(item.get("name"), str)]
    return len({*names}) == len(items) > 0


def _by_name(items: list[Any]) -> dict[str, int]:
    return {str(item["name"]): index for index, item in enumerate(items)}


def _item(items: list[Any], places: Mapping[str, int], name: str) -> Any:  # noqa: ANN401 - any JSON value
    return items[places[name]] if name in places else ABSENT


def _options(arguments: list[Any]) -> dict[str, tuple[int, str | None]] | None:
    """Index and value of each option; None where something else stands among them, or one stands there twice."""
    found: dict[str, tuple[int, str | None]] = {}
    before = ""
    for index, argument in enumerate(arguments):
        if not isinstance(argument, str):
            return None
        if argument.startswith("--"):
            if argument in found:
                return None
            found[argument], before = (index, None), argument
        elif before:
            found[before], before = (found[before][0], argument), ""
        else:
            return None
    return found


def _shown(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    return None if value is ABSENT else json_text(value)
