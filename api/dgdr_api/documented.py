"""JSON Schema whose descriptions are the docstrings below the fields.

pydantic reads them itself (``use_attribute_docstrings``), but whenever a class is made: every command would parse the
source of all models at its start, a tenth of the time of a warm search.
"""

import ast
import inspect
import textwrap
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


class DocumentedSchema(GenerateJsonSchema):
    """Generates as pydantic does; a property without a description gets its field's docstring."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of one model."""
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        docs = attribute_docstrings(model)
        properties: dict[str, dict[str, Any]] = made.get("properties", {})
        for name, field in model.model_fields.items():
            wire = properties.get(field.serialization_alias or name, properties.get(name))
            if wire is not None and name in docs:
                wire.setdefault("description", docs[name])
        return made


def attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field of a model and of the models that it extends, without its indentation.

    Raises:
        OSError: the source of the class is not there.
    """
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls is not BaseModel:
            found |= _of_class(cls)
    return found


def _of_class(cls: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    if not isinstance(definition, ast.ClassDef):
        return {}
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = inspect.cleandoc(value.value)
    return found
