"""Rules that a schema cannot state: one place holds the CEL text, the message and the Python predicate of each.

A rule of one value is put beside its type, ``Annotated[str, Rule(...)]``; a rule over several fields of an object is
listed in the object's ``rules``. Either way pydantic checks the predicate (on a laptop) and the CRD generator writes
the CEL text (for the API server), so both refuse the same objects in the same words.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dgdr_api.base import ApiModel

VALIDATIONS = "x-kubernetes-validations"
BROKEN_RULES = "broken_rules"
"""Type of the pydantic error that broken rules raise; its context holds ``broken``: field and message of each."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule, as the API server and as Python see it."""

    id: str
    """Short name, unique, for tests and documentation."""
    cel: str
    """Expression over ``self``; true when the rule holds."""
    message: str
    """What the user reads; the same text on both sides."""
    holds: Callable[[Any], bool]
    """The same as ``cel`` over the validated value, in which defaults are already filled in."""
    field: str = ""
    """Path of the field to blame, below ``self``, with a leading dot; empty blames ``self``."""
    found: Callable[[Any], str] | None = None
    """What was found, for a laptop's message: CEL cannot afford to put values together."""

    def said(self, value: object) -> str:
        """Return the message, with the values that it is about where the rule tells them."""
        return self.message if self.found is None else f"{self.message} ({self.found(value)})"

    def validation(self) -> dict[str, str]:
        """Return the entry of ``x-kubernetes-validations``."""
        entry = {"rule": self.cel, "message": self.message}
        if self.field:
            entry["fieldPath"] = self.field
        return entry

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        def check(value: object) -> object:
            raise_broken((self,), value)
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        made.setdefault(VALIDATIONS, []).append(self.validation())
        return made


class RuledModel(ApiModel):
    """A value of the contract with rules over its fields."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        raise_broken(self.rules, self)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        if cls.rules:
            handler.resolve_ref_schema(made)[VALIDATIONS] = [rule.validation() for rule in cls.rules]
        return made


def raise_broken(rules: Iterable[Rule], value: object) -> None:
    """Raise one pydantic error that carries every rule that does not hold for ``value``."""
    broken = tuple(rule for rule in rules if not rule.holds(value))
    if broken:
        said = tuple((rule.field, rule.said(value)) for rule in broken)
        text = "; ".join(message for _, message in said)
        raise PydanticCustomError(BROKEN_RULES, "{text}", {"text": text, "broken": said})


def exactly_one(id: str, *fields: str) -> Rule:  # noqa: A002
    """Return the rule that exactly one of the wire names ``fields`` is given."""
    names = {field: _attribute(field) for field in fields}
    return Rule(
        id=id,
        cel=f"[{', '.join(f'has(self.{field})' for field in fields)}].exists_one(x, x)",
        message=f"give exactly one of {', '.join(fields[:-1])} and {fields[-1]}",
        holds=lambda value: sum(getattr(value, name) is not None for name in names.values()) == 1,
        found=given(*fields),
    )


def given(*fields: str) -> Callable[[Any], str]:
    """Return what tells which of the wire names ``fields`` an object has: ``found concurrency and requestRate``."""

    def found(value: object) -> str:
        names = [field for field in fields if getattr(value, _attribute(field)) is not None]
        return f"found {' and '.join(names) or 'none'}"

    return found


def values(*fields: str) -> Callable[[Any], str]:
    """Return what tells the values that an object has under the wire names: ``minBudget 20, budget 16``."""

    def found(value: object) -> str:
        return ", ".join(f"{field} {_number(getattr(value, _attribute(field)))}" for field in fields)

    return found


class Distinct:
    """Marks a list as a set: ``x-kubernetes-list-type: set`` for the API server, a check here."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        def check(value: tuple[object, ...]) -> tuple[object, ...]:
            for index, item in enumerate(value):
                if item in value[:index]:
                    raise PydanticCustomError("duplicate", "{item} stands twice in a set", {"item": item})
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        made["uniqueItems"] = True
        return made


def _number(value: object) -> object:
    """A value as a person writes it: a whole float without its point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _attribute(wire_name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in wire_name)
