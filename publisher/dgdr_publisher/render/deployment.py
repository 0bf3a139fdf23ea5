"""What the renderer needs besides the candidate: where the model lies, which image runs, which nodes a SKU has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dgdr_api.model_ref import RemoteCode
from dgdr_api.terms import RoleKind


@dataclass(frozen=True)
class SecretKey:
    """A key of a Secret."""

    name: str
    key: str


@dataclass(frozen=True)
class Claim:
    """A volume claim that holds models."""

    name: str
    mount_path: str
    model_path: str
    """Path of the model inside the claim; empty: the claim is a Hugging Face cache."""


@dataclass(frozen=True)
class ModelSource:
    """The model as the request names it."""

    name: str
    revision: str | None = None
    remote_code: RemoteCode = "Never"
    claim: Claim | None = None
    token_secret: SecretKey | None = None


@dataclass(frozen=True)
class NodePool:
    """The nodes of one role."""

    gpus_per_node: int
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...] = ()
    shared_memory_size: str | None = None


@dataclass(frozen=True)
class Deployment:
    """The settings of one deployment."""

    model: ModelSource
    image: str
    runtime_version: str
    """Dynamo version of the image, MAJOR.MINOR.PATCH."""
    runtime_version_override: str | None
    """Set when the image tag does not say that version."""
    nodes: Mapping[RoleKind, NodePool]
    """By role."""
