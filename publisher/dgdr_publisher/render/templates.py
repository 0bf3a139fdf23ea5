"""The template folders: which engine and runtime versions each one claims, and rendering with Jinja2.

A template is chosen by exact versions, never by the nearest: flags change between releases without notice.
"""

import functools
import importlib.resources
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

import jinja2
import jinja2.sandbox
import yaml
from dgdr_api import fast_yaml
from dgdr_api.canonical import canonical_json
from dgdr_api.expressible import unrendered_backend
from dgdr_api.terms import BACKENDS, Backend
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from dgdr_publisher.errors import NotRenderableError

ROOT = importlib.resources.files("dgdr_publisher") / "templates"
Versions = Annotated[tuple[str, ...], Field(min_length=1)]


class Template(BaseModel):
    """One template folder: ``template.yaml`` beside its Jinja2 files."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    id: str
    version: int
    backend: Backend
    engine_versions: Versions
    """The engine versions whose argument definitions were read."""
    runtime_versions: Versions
    """The Dynamo versions whose wrapper flags were read."""
    facts: Mapping[str, Any]
    """What the Jinja2 files need to know of these versions."""
    folder: str = Field(default="", exclude=True)

    @property
    def renderer_version(self) -> str:
        """How a candidate names the template that made it, e.g. ``vllm-0.26.0/1``."""
        return f"{self.id}/{self.version}"


@functools.cache
def templates() -> tuple[Template, ...]:
    """Every template folder, by backend and folder name."""
    found = []
    for backend in BACKENDS:
        folder = ROOT / backend
        if not folder.is_dir():
            continue
        for version in sorted(folder.iterdir(), key=lambda entry: entry.name):
            document = fast_yaml.load((version / "template.yaml").read_text(encoding="utf-8"))
            template = Template.model_validate(document)
            found.append(template.model_copy(update={"folder": f"{backend}/{version.name}"}))
    return tuple(found)


def template_for(*, backend: Backend, engine_version: str, runtime_version: str) -> Template:
    """The template that claims exactly these versions.

    Raises:
        NotRenderableError: no template claims them; the message names the versions that have one.
    """
    of_backend = [template for template in templates() if template.backend == backend]
    if not of_backend:
        raise NotRenderableError("candidate.backend", backend, unrendered_backend(backend) or "it has no template")
    for template in of_backend:
        if engine_version in template.engine_versions:
            if runtime_version not in template.runtime_versions:
                listed = ", ".join(template.runtime_versions)
                raise NotRenderableError(
                    "runtime.versionOverride",
                    runtime_version,
                    f"the template of {backend} {engine_version} knows the Dynamo versions {listed}",
                )
            return template
    listed = ", ".join(version for template in of_backend for version in template.engine_versions)
    raise NotRenderableError(
        "candidate.roles.engineVersion", engine_version, f"{backend} has templates of the versions {listed}"
    )


def render_template(template: Template, context: Mapping[str, Any]) -> dict[str, Any]:
    """The DynamoGraphDeployment that the template makes of a context (`dgdr_publisher.render.context`).

    Raises:
        NotRenderableError: the template asks for something that neither context nor its facts have.
    """
    try:
        text = _environment().get_template("v1beta1/dgd.yaml.j2").render(template=template, **context)
        document: dict[str, Any] = fast_yaml.load(text)
    except (jinja2.TemplateError, yaml.YAMLError) as error:
        raise NotRenderableError("template", template.id, f"{type(error).__name__}: {error}") from error
    return document


@functools.cache
def _environment() -> jinja2.sandbox.SandboxedEnvironment:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    environment.filters["yaml"] = yaml_scalar
    environment.filters["json"] = canonical_json
    return environment


def _source(name: str) -> str | None:
    file = ROOT.joinpath(*name.split("/"))
    return file.read_text(encoding="utf-8") if file.is_file() else None


def yaml_scalar(value: object) -> str:
    """A value as JSON that every YAML reader takes for the same value: ASCII only.

    YAML has no surrogate pairs, and refuses DEL: characters beyond 16 bits and DEL are escaped in its own way.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, default=_not_json).replace("\x7f", "\\x7f")
    return re.sub(r"(\\+)ud([89ab][0-9a-f]{2})\\ud([c-f][0-9a-f]{2})", _astral, text)


def _not_json(value: object) -> str:
    """An undefined value says so when it is made a text; nothing else may become one silently."""
    if isinstance(value, jinja2.Undefined):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON type")


def _astral(match: re.Match[str]) -> str:
    if len(match[1]) % 2 == 0:  # an escaped backslash before the letter u
        return match[0]
    high, low = int("d" + match[2], 16), int("d" + match[3], 16)
    code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
    return f"{match[1]}U{code:08x}"
