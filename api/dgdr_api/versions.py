"""The version chain: image tag, runtime, engine, template, performance data. Nothing ever picks "the nearest"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from dgdr_api.errors import VersionChainBroken
from dgdr_api.fast_yaml import load_strings
from dgdr_api.images import parse_tag, tag_of
from dgdr_api.terms import BACKENDS, Backend

NAMES: Mapping[Backend, str] = MappingProxyType({"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"})
"""How the backends write themselves."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The links from an image to the data that times it and to its template, for one backend on one GPU type."""

    backend: Backend
    sku: str
    runtime: str
    """Dynamo version of the image."""
    engine: str
    """Engine version in the image."""
    performance_data: str
    """Version of the data."""
    pinned: bool
    """Whether the request pins data of another version than the engine."""


@dataclass(frozen=True, kw_only=True)
class BackendChains:
    """The chains of one backend on every GPU type of a search: one data version on all of them."""

    by_sku: Mapping[str, Chain]
    """By canonical name; at least one."""
    missing: Mapping[str, str]
    """GPU types without the data that another type has, with the reason."""

    @property
    def performance_data(self) -> str:
        """The one version of the data."""
        return next(iter(self.by_sku.values())).performance_data


@dataclass(frozen=True, kw_only=True)
class VersionTable:
    """What is known about versions."""

    runtimes: Mapping[str, Mapping[Backend, str]]
    """Engine versions by Dynamo runtime version, newest first."""
    performance_data: Mapping[str, Mapping[Backend, tuple[str, ...]]]
    """Data versions by GPU type and backend, default first."""
    templates: Mapping[Backend, tuple[str, ...]]
    """Engine versions with a template; a backend that is not here has none at all."""
    equal_tp: Mapping[Backend, tuple[str, ...]]
    """Engine versions whose prefill and decode workers must have the same tensor parallel size."""
    source: str
    """Where the data versions come from."""


@cache
def table() -> VersionTable:
    """The version table of ``data/versions.yaml``."""
    text = files("dgdr_api").joinpath("data/versions.yaml").read_text("utf-8")
    read = load_strings(text)
    return VersionTable(
        runtimes=MappingProxyType(read["runtimes"]),
        performance_data=MappingProxyType(
            {
                sku: {backend: tuple(slots) for backend, slots in by_backend.items()}
                for sku, by_backend in read["performanceData"].items()
            }
        ),
        templates=MappingProxyType({backend: tuple(versions) for backend, versions in read["templates"].items()}),
        equal_tp=MappingProxyType({backend: tuple(versions) for backend, versions in read["equalTp"].items()}),
        source=read["performanceDataSource"],
    )


def data_versions(backend: Backend, sku: str) -> tuple[str, ...]:
    """Versions of performance data for a backend on a GPU type (canonical name), default first; empty: none."""
    return table().performance_data.get(sku, {}).get(backend, ())


def runtime_version(image: str, version_override: str | None = None) -> str | None:
    """Return the Dynamo version by which an image is looked up, or None when neither tag nor override names one.

    A pre-release or post-release that the table lists counts with its full version (``1.3.0-dev.1`` and
    ``0.8.1.post2`` carry other engines than 1.3.0 and 0.8.1), unless the override names another core. A pre-release
    that is not listed stays itself, unknown, until an override says what it is. Every other tag counts with its core,
    and an override counts before the tag.
    """
    tag = (tag_of(image) or "").removeprefix("v")
    if version_override is not None and _carries(tag, version_override):
        return tag
    parsed = parse_tag(tag)
    if parsed is None:
        return version_override
    core, pre_release = parsed
    if pre_release in table().runtimes and version_override in (None, core):
        return pre_release
    return version_override or pre_release or core


def _carries(tag: str, version_override: str) -> bool:
    """Whether a tag is a listed post-release (``0.8.1.post2``, no semantic version) of the override's version."""
    return tag in table().runtimes and tag.startswith(f"{version_override}.post")


def engine_version(runtime: str, backend: Backend) -> str | None:
    """Engine version that a Dynamo runtime carries; None when the runtime is not in the table."""
    return table().runtimes.get(runtime, {}).get(backend)


def template_engines(backend: Backend) -> tuple[str, ...]:
    """Engine versions of a backend that a template renders; empty: nothing renders the backend at all."""
    return table().templates.get(backend, ())


def resolve_chain(
    image: str, version_override: str | None, pins: Mapping[str, str] | None, backend: Backend, sku: str
) -> Chain:
    """Follow the chain from an image to performance data and to a template.

    A backend without any template passes: that it cannot be rendered is no matter of versions.

    Args:
        image: ``runtime.image`` of the request.
        version_override: ``runtime.versionOverride``.
        pins: ``runtime.performanceDataVersion``.
        backend: one of the request's backends.
        sku: canonical name of the GPU type.

    Raises:
        VersionChainBroken: a link is missing, no template renders the engine, or the pinned data does not exist.
            The message names every link and the field and value that would mend it.
    """
    runtime = runtime_version(image, version_override)
    if runtime is None:
        raise VersionChainBroken(
            f"image {image} has no tag of the form MAJOR.MINOR.PATCH, so its Dynamo version is not known; "
            "set runtime.versionOverride to it, e.g. runtime.versionOverride: 1.4.2",
            field="runtime.versionOverride",
            fix="runtime.versionOverride: 1.4.2",
        )
    engine = engine_version(runtime, backend)
    if engine is None:
        listed = ", ".join(table().runtimes)
        raise VersionChainBroken(
            f"image {image} is Dynamo {runtime}, whose {NAMES[backend]} version is not known; known are {listed}; "
            "if the image carries the engines of one of them, name it in runtime.versionOverride",
            field="runtime.versionOverride",
            fix="",
        )
    by = " by runtime.versionOverride" if runtime_version(image) != runtime else ""
    links = f"image {image} is Dynamo {runtime}{by}, which carries {NAMES[backend]} {engine}"
    exist = data_versions(backend, sku)
    if not exist:
        raise _no_data(links, backend, sku)
    if template_engines(backend) and engine not in template_engines(backend):
        raise _no_template(links, image, backend, sku, overridden=version_override is not None)
    pin = (pins or {}).get(backend)
    wanted = pin or engine
    if wanted not in exist:
        raise _no_such_data(links, wanted, backend, sku, pinned=wanted != engine)
    return Chain(
        backend=backend, sku=sku, runtime=runtime, engine=engine, performance_data=wanted, pinned=wanted != engine
    )


def resolve_chains(
    image: str, version_override: str | None, pins: Mapping[str, str] | None, backend: Backend, skus: Sequence[str]
) -> BackendChains:
    """Follow the chain on every GPU type of a search.

    Data of the image's own engine may be missing on some types: what needs them has no data, the rest is searched.

    Args:
        image: ``runtime.image`` of the request.
        version_override: ``runtime.versionOverride``.
        pins: ``runtime.performanceDataVersion``.
        backend: one of the request's backends.
        skus: canonical names of the GPU types in use, at least one.

    Raises:
        VersionChainBroken: the chain is broken on every type, or on one and the request pins data of another version.
    """
    by_sku: dict[str, Chain] = {}
    broken: dict[str, VersionChainBroken] = {}
    for sku in dict.fromkeys(skus):
        try:
            by_sku[sku] = resolve_chain(image, version_override, pins, backend, sku)
        except VersionChainBroken as error:
            broken[sku] = error
    if broken and (not by_sku or any(chain.pinned for chain in by_sku.values())):
        raise next(iter(broken.values()))
    return BackendChains(
        by_sku=MappingProxyType(by_sku), missing=MappingProxyType({sku: str(error) for sku, error in broken.items()})
    )


def common_data_version(backend: Backend, skus: Sequence[str]) -> str:
    """The default data version of a backend, which must be the same on all these GPU types.

    Raises:
        VersionChainBroken: a type has no data, or the defaults differ; names them and the versions that all have.
    """
    exist = {sku: data_versions(backend, sku) for sku in dict.fromkeys(skus)}
    for sku, versions in exist.items():
        if not versions:
            raise _no_data("the data version is not given", backend, sku)
    defaults = {sku: versions[0] for sku, versions in exist.items()}
    if len(set(defaults.values())) == 1:
        return next(iter(defaults.values()))
    common = [version for version in next(iter(exist.values())) if all(version in each for each in exist.values())]
    told = ", ".join(f"{sku} {version}" for sku, version in defaults.items())
    name = "search_space.backend_version"
    would_do = f"all have {' and '.join(common)}: set one in {name}" if common else "no version exists on all of them"
    raise VersionChainBroken(
        f"the default data of {NAMES[backend]} is not the same on every GPU type ({told}); {would_do}",
        field=name,
        fix=f"{name}: {{{backend}: {common[0]}}}" if common else "",
    )


def _no_data(links: str, backend: Backend, sku: str) -> VersionChainBroken:
    others = [other for other in BACKENDS if data_versions(other, sku)]
    having = f"{sku} has data for {', '.join(others)} only" if others else f"{sku} has no performance data at all"
    return VersionChainBroken(
        f"{links}; there is no {NAMES[backend]} performance data for {sku}: {having}",
        field="backends" if others else "hardware.gpu.sku",
        fix="",
    )


def _no_template(links: str, image: str, backend: Backend, sku: str, *, overridden: bool) -> VersionChainBroken:
    having, exist = template_engines(backend), data_versions(backend, sku)
    would_do = [runtime for runtime, engines in table().runtimes.items() if engines.get(backend) in having]
    bound = [runtime for runtime in would_do if engine_version(runtime, backend) in exist]
    pin = "" if bound else f", with runtime.performanceDataVersion: {{{backend}: {exist[0]}}}"
    override = " and runtime.versionOverride to the same version" if overridden else ""
    example = f"{image.partition('@')[0].removesuffix(f':{tag_of(image)}')}:{(bound or would_do)[0]}"
    return VersionChainBroken(
        f"{links}; no template renders that engine, only {' and '.join(having)}, and performance data "
        f"for {backend} on {sku} is that of {' and '.join(exist)}; set runtime.image to one of Dynamo "
        f"{' or '.join(bound or would_do)}, e.g. {example}{override}{pin}",
        field="runtime.image",
        fix=f"runtime.image: {example}",
    )


def _no_such_data(links: str, wanted: str, backend: Backend, sku: str, *, pinned: bool) -> VersionChainBroken:
    exist = data_versions(backend, sku)
    fix = f"runtime.performanceDataVersion: {{{backend}: {exist[0]}}}"
    missing = f"performance data {wanted}, pinned by runtime.performanceDataVersion," if pinned else f"data of {wanted}"
    usable = set(exist).intersection(template_engines(backend) or exist)
    carrying = [runtime for runtime, engines in table().runtimes.items() if engines.get(backend) in usable]
    image_hint = f"; or use an image of Dynamo {' or '.join(carrying)}" if carrying else ""
    return VersionChainBroken(
        f"{links}; {missing} does not exist for {backend} on {sku}, only {' and '.join(exist)}; "
        f"to use that of another version, set {fix}{image_hint}",
        field=f"runtime.performanceDataVersion.{backend}",
        fix=fix,
    )
