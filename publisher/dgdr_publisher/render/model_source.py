"""Where each component finds the model: Hugging Face id or local path, cache folder, revision, remote code, token.

Rules: without a path in the claim, the claim is the Hugging Face cache of every component (the frontend reads the
tokenizer) and the model keeps its id; with a path, workers and frontend read that folder and the id stays the served
name. The doubled mount path of earlier systems comes from joining the two, so one function joins them.
"""

import re
from dataclasses import dataclass
from typing import Any

from dgdr_api.model_ref import MODEL_NAME_RULE
from dgdr_api.pod_texts import MODEL_NAME_TEXT, MODEL_PATH_TEXT, MOUNT_PATH, REVISION
from dgdr_api.rules import Rule

from dgdr_publisher.errors import NotRenderableError
from dgdr_publisher.render.deployment import Claim, ModelSource

VOLUME = "model-cache"
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class ModelPlaces:
    """What the components are told about the model."""

    model: str
    """Argument of a worker: the id, or a folder of the claim."""
    local: bool
    """Whether ``model`` is a folder."""
    served_name: str
    revision: str | None
    """Given to the engine only with an id; a folder is what it is."""
    trust_remote_code: bool
    env: tuple[dict[str, Any], ...]
    volumes: tuple[dict[str, Any], ...]
    volume_mounts: tuple[dict[str, Any], ...]


def model_places(source: ModelSource) -> ModelPlaces:
    """The places of a model.

    Raises:
        NotRenderableError: a name or path that an argument cannot carry, or trusted code that is not pinned.
    """
    _check_texts(source)
    claim = source.claim
    path = _local_path(source)
    env: list[dict[str, Any]] = []
    if claim is not None and not claim.model_path:
        env.append({"name": "HF_HOME", "value": _mount(claim)})
    if source.token_secret is not None:
        secret = {"name": source.token_secret.name, "key": source.token_secret.key}
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": secret}})
    volumes, mounts = [], []
    if claim is not None:
        volumes.append({"name": VOLUME, "persistentVolumeClaim": {"claimName": claim.name}})
        mounts.append({"name": VOLUME, "mountPath": _mount(claim)})
    return ModelPlaces(
        model=path or source.name,
        local=path is not None,
        served_name=source.name,
        revision=source.revision if path is None else None,
        trust_remote_code=source.remote_code != "Never",
        env=tuple(env),
        volumes=tuple(volumes),
        volume_mounts=tuple(mounts),
    )


def container_path(mount_path: str, model_path: str) -> str:
    """The path that a container sees for a path of the claim.

    An empty path is the mount itself; a path that already lies under the mount is kept; any other, with or without
    a leading slash, is relative to the claim's root. A slash at its end means nothing.
    """
    mount, model_path = mount_path.rstrip("/"), model_path.rstrip("/")
    if not model_path:
        return mount
    if model_path == mount or model_path.startswith(mount + "/"):
        return model_path
    return f"{mount}/{model_path.lstrip('/')}"


def _mount(claim: Claim) -> str:
    return claim.mount_path.rstrip("/")


def _local_path(source: ModelSource) -> str | None:
    claim = source.claim
    if claim is not None and claim.model_path:
        return container_path(claim.mount_path, claim.model_path)
    if source.remote_code != "TrustCacheAndRevision":
        return None
    if claim is None or source.revision is None:
        raise NotRenderableError(
            "modelRef.remoteCode", source.remote_code, "it needs modelRef.revision and modelRef.cache.pvc"
        )
    if not _COMMIT.fullmatch(source.revision):
        raise NotRenderableError(
            "modelRef.revision",
            source.revision,
            "trusted code is pinned by its snapshot folder, which a Hugging Face cache names by the commit of 40 hex "
            "digits: give that, or modelRef.cache.pvc.modelPath",
        )
    snapshot = f"hub/models--{source.name.replace('/', '--')}/snapshots/{source.revision}"
    return container_path(claim.mount_path, snapshot)


def _check_texts(source: ModelSource) -> None:
    """The rules of a request once more: a candidate may come from elsewhere, and every text becomes an argument."""
    texts: list[tuple[str, str | None, tuple[Rule, ...]]] = [
        ("modelRef.name", source.name, (MODEL_NAME_RULE, MODEL_NAME_TEXT)),
        ("modelRef.revision", source.revision, (REVISION,)),
    ]
    if source.claim is not None:
        texts.append(("modelRef.cache.pvc.modelPath", source.claim.model_path, (MODEL_PATH_TEXT,)))
        texts.append(("modelRef.cache.pvc.mountPath", source.claim.mount_path, (MOUNT_PATH,)))
    for field, text, rules in texts:
        for rule in rules:
            if text is not None and not rule.holds(text):
                raise NotRenderableError(field, text, rule.message)
