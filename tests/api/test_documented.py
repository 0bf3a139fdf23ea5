from typing import Annotated, Any

from dgdr_api.documented import DocumentedSchema, attribute_docstrings
from pydantic import BaseModel, ConfigDict, Field


class Told(BaseModel):
    """pydantic itself reads the docstrings of this one."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    first: int
    """One line."""
    second: Annotated[str, Field(min_length=1)] = "a"
    """Several lines,
    of which the second is indented,

        and the last one more."""
    third: float | None = None
    # a comment is no docstring
    fourth: dict[str, int] = Field(default_factory=dict, description="given, which wins")
    """Below a description."""


class Extended(Told):
    """Adds a field and tells one anew."""

    first: int
    """Told anew."""
    fifth: bool = False
    """Only here."""


class Plain(BaseModel):
    """The same as a part of another."""

    model_config = ConfigDict(alias_generator=str.upper)

    told: int
    """Told below."""
    given: int = Field(1, description="given, which wins")
    """Not this."""


class Whole(BaseModel):
    """Has a part."""

    parts: list[Plain]
    """The parts."""


def descriptions(model: type[BaseModel]) -> dict[str, Any]:
    return {name: field.description for name, field in model.model_fields.items() if field.description is not None}


def test_docstrings_are_those_that_pydantic_reads() -> None:
    given = {"fourth": "given, which wins"}
    assert attribute_docstrings(Told) | given == descriptions(Told)
    assert attribute_docstrings(Extended) | given == descriptions(Extended)
    assert attribute_docstrings(Extended)["first"] == "Told anew."


def test_a_schema_tells_them_by_wire_name_and_a_description_wins() -> None:
    schema = Whole.model_json_schema(schema_generator=DocumentedSchema)
    assert schema["properties"]["parts"]["description"] == "The parts."
    part = schema["$defs"]["Plain"]["properties"]
    assert (part["TOLD"]["description"], part["GIVEN"]["description"]) == ("Told below.", "given, which wins")


def test_a_schema_is_otherwise_that_of_pydantic() -> None:
    assert Told.model_json_schema(schema_generator=DocumentedSchema) == Told.model_json_schema()
