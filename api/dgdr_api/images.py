"""Runtime images: the version that a tag names, and the image of another backend."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from dgdr_api.terms import Backend

IMAGE_NAMES: Mapping[Backend, str] = MappingProxyType(
    {"vllm": "vllm-runtime", "sglang": "sglang-runtime", "trtllm": "tensorrtllm-runtime"}
)
"""Last path component of the runtime image of each backend."""
FRONTEND_IMAGE = "dynamo-frontend"
PLANNER_IMAGE = "dynamo-planner"

_SEMVER = re.compile(
    r"[vV]?(?P<core>(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*))"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_VARIANT = re.compile(r"-(?:efa|amd64|arm64|cuda\d+|enterprise)(?=-|$)")
"""Suffixes of a tag that name a build of the same version."""
_DEV = re.compile(r"(?:dev|rc|alpha|beta)[.]?\d+")
"""A pre-release of the runtime itself; ``<model>-dev.N`` is a build for one model instead."""


def tag_of(image: str) -> str | None:
    """Return the tag of an image, without a digest; None when it has none."""
    name = image.partition("@")[0]
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon and tag else None


def parse_tag(tag: str) -> tuple[str, str | None] | None:
    """Split a tag into its version MAJOR.MINOR.PATCH and, if the runtime itself is a pre-release, that full version.

    ``1.4.2`` and ``v1.4.2-efa`` give ``("1.4.2", None)``, ``1.3.0-dev.1`` gives ``("1.3.0", "1.3.0-dev.1")``,
    ``1.5.0-some-model-dev.1`` gives ``("1.5.0", None)``: only the core counts. What is no strict semantic version
    (``latest``, ``1.6``, ``1.3.0.post1``) gives None.
    """
    found = _SEMVER.fullmatch(tag)
    if found is None:
        return None
    core, pre = found["core"], found["pre"]
    rest = _VARIANT.sub("", f"-{pre}").removeprefix("-") if pre else ""
    return core, (f"{core}-{rest}" if _DEV.fullmatch(rest) else None)


def component_of(image: str) -> str:
    """Return the last path component of an image, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def image_for(image: str, backend: Backend) -> str:
    """Return the runtime image of ``backend``: registry, path and tag stay, the last path component is swapped.

    An image that `can_swap` denies is returned as it is.
    """
    return with_component(image, IMAGE_NAMES[backend]) if can_swap(image) else image


def can_swap(image: str) -> bool:
    """Whether the images of other backends follow from this one: a name of ours, and a tag instead of a digest."""
    return "@" not in image and component_of(image) in IMAGE_NAMES.values()


def with_component(image: str, component: str) -> str:
    """Return the image ``component`` of the same registry path and tag, e.g. the frontend or the planner."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    _, colon, tag = last.partition(":")
    return f"{folder}{slash}{component}{colon}{tag}"
