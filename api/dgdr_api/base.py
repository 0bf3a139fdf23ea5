"""The pydantic base of the contract."""

from typing import Any

from pydantic import BaseModel, ConfigDict


def camel(name: str) -> str:
    """The wire name of a field: ``e2e_ms`` is ``e2eMs`` (pydantic's own generator would make it ``e2EMs``)."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


class ApiModel(BaseModel):
    """A value of the contract: frozen, camelCase on the wire, unknown keys refused, docstrings become descriptions."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )


def wire(model: BaseModel, *, given_only: bool = False) -> dict[str, Any]:
    """Return the JSON form of a value: camelCase, absent fields left out.

    With ``given_only`` defaults are left out too: what a user wrote comes back as it was.
    """
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=given_only)
