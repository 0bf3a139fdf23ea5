"""Walking a value beside the model that it should fit."""

from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel


def bare(annotation: Any) -> Any:  # noqa: ANN401
    """Return the type without ``Annotated`` and without ``None``."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
            continue
        branches = get_args(annotation)
        if NoneType not in branches:
            return annotation
        annotation = next(branch for branch in branches if branch is not NoneType)


def fields_of(annotation: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the type of each field of a model by its wire name; empty for anything else."""
    inner = bare(annotation)
    if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
        return {}
    return {field.alias or name: field.annotation for name, field in inner.model_fields.items()}


def item_type(annotation: Any) -> Any:  # noqa: ANN401
    """Return the type of the values of a map or of the items of a list; None for anything else."""
    inner = bare(annotation)
    arguments = get_args(inner)
    if not arguments:
        return None
    return arguments[1] if get_origin(inner) is dict else arguments[0]


def below(annotation: Any, location: tuple[int | str, ...]) -> Any:  # noqa: ANN401
    """Return the type that stands at ``location``; None where nothing typed is."""
    for part in location:
        annotation = fields_of(annotation).get(str(part)) or item_type(annotation)
    return annotation


def without_nulls(annotation: Any, value: Any) -> Any:  # noqa: ANN401
    """Return ``value`` without the typed fields that are null, as the API server stores it.

    Null stays where it is wrong anyway (an item of a list, an unknown field) and where nothing is typed.
    """
    if annotation is None or bare(annotation) is Any:
        return value
    if isinstance(value, dict):
        types = fields_of(annotation)
        made = {}
        for name, item in value.items():
            kind = types.get(name) if types else item_type(annotation)
            if item is not None or kind is None or bare(kind) is Any:
                made[name] = without_nulls(kind, item)
        return made
    if isinstance(value, list):
        return [without_nulls(item_type(annotation), item) for item in value]
    return value
