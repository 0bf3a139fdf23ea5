"""Which model is served, and where its files come from."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dgdr_api.base import ApiModel
from dgdr_api.pod_texts import MODEL_NAME_TEXT, MODEL_PATH_TEXT, MOUNT_PATH, REVISION, DataKey, ObjectName
from dgdr_api.rules import Rule, RuledModel

RemoteCode = Literal["Never", "TrustCacheAndRevision", "AlwaysTrust"]

_UP_OR_ROOT = re.compile(r"^/|(^|/)\.\.(/|$)")


def relative_path(id: str) -> Rule:  # noqa: A002
    """Return the rule that a path stays below its root."""
    return Rule(
        id=id,
        cel=r"!self.matches('^/|(^|/)[.][.](/|$)')",
        message="must be a relative path without a .. segment",
        holds=lambda path: not _UP_OR_ROOT.search(path),
    )


MODEL_NAME_RULE = Rule(
    id="model-name",
    cel=r"!self.matches('^/|(^|/)[.][.](/|$)')",
    message="must be a Hugging Face id or a name: no leading / and no .. segment",
    holds=lambda name: not _UP_OR_ROOT.search(name),
)


class ModelCachePvc(ApiModel):
    """A claim that holds model files."""

    name: ObjectName
    """Name of the claim."""
    model_path: Annotated[str, Field(max_length=1024), relative_path("model-path"), MODEL_PATH_TEXT] = ""
    """Folder of the model, relative to the root of the claim. Empty: the claim is a Hugging Face cache."""
    mount_path: Annotated[str, Field(max_length=1024, pattern="^/"), MOUNT_PATH] = "/opt/model-cache"
    """Where every component mounts the claim: an absolute path, /opt/model-cache by default."""


class ModelCache(ApiModel):
    """Where the model's files lie."""

    pvc: ModelCachePvc
    """A claim that holds the files."""


class ModelConfigMap(ApiModel):
    """A ConfigMap that holds a model's configuration."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: DataKey = "config.json"
    """Key of the text of config.json; config.json by default."""
    quant_key: DataKey | None = None
    """Key of the text of hf_quant_config.json, if the model has one."""


class ModelConfig(ApiModel):
    """Configuration of a model that is not shipped. Nothing is ever downloaded."""

    config_map: ModelConfigMap
    """The ConfigMap with config.json."""


class TokenSecret(ApiModel):
    """A key of a Secret."""

    name: ObjectName
    """Name of the Secret."""
    key: DataKey = "HF_TOKEN"
    """Key in the Secret; HF_TOKEN by default."""


class ModelRef(RuledModel):
    """The model to serve."""

    rules: ClassVar = (
        Rule(
            id="remote-code-revision",
            cel="!has(self.remoteCode) || self.remoteCode != 'TrustCacheAndRevision' || has(self.revision)",
            message="remoteCode TrustCacheAndRevision needs a revision",
            holds=lambda ref: ref.remote_code != "TrustCacheAndRevision" or ref.revision is not None,
            field=".revision",
        ),
        Rule(
            id="remote-code-cache",
            cel="!has(self.remoteCode) || self.remoteCode != 'TrustCacheAndRevision' || has(self.cache)",
            message="remoteCode TrustCacheAndRevision needs cache.pvc",
            holds=lambda ref: ref.remote_code != "TrustCacheAndRevision" or ref.cache is not None,
            field=".cache",
        ),
    )

    name: Annotated[str, Field(min_length=1, max_length=253), MODEL_NAME_RULE, MODEL_NAME_TEXT]
    """Hugging Face id or name, e.g. Qwen/Qwen3-32B."""
    revision: Annotated[str, Field(min_length=1, max_length=253), REVISION] | None = None
    """Revision of the model, e.g. a commit."""
    remote_code: RemoteCode = "Never"
    """Whether the model's own Python code may run. Never by default; TrustCacheAndRevision allows what a pinned
    revision in a claim holds; AlwaysTrust allows everything."""
    cache: ModelCache | None = None
    """Where the model's files lie. Absent: the deployment downloads them."""
    config: ModelConfig | None = None
    """Configuration of a model that is not shipped. Absent: the shipped models, then cache.pvc at the revision."""
    token_secret: TokenSecret | None = None
    """Token for gated models: the deployment gets it as HF_TOKEN, the search Job never."""

    @property
    def is_local_snapshot(self) -> bool:
        """Whether workers load a folder of the claim: its modelPath, or the trusted revision's snapshot."""
        if self.cache is None:
            return False
        return bool(self.cache.pvc.model_path) or self.remote_code == "TrustCacheAndRevision"
