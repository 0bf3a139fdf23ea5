"""The configuration of a model that is not shipped: read from a folder, checked, and known by its content alone.

A folder stands for an object of the cluster that the request names: a ConfigMap, or a claim with model files. Nothing
is downloaded. What is read is copied to a folder that is named by the content, and only that is shown to the
performance model: the same files at another place are the same model, and a folder that changes meanwhile changes
nothing.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from dgdr_api.model_ref import ModelConfigMap, ModelRef, RemoteCode

from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.wheel import is_local, near, shipped_models

CONFIG, QUANTIZATION = "config.json", "hf_quant_config.json"
MAX_BYTES = 8 * 1024 * 1024
"""Of one file; the largest that is shipped has 3 MiB."""
MOST = 1 << 24
"""Beyond any size of any model: tokens of its context are the largest, 10 millions so far."""
SIZES = (
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "kv_lora_rank",
    "max_position_embeddings",
    "moe_intermediate_size",
    "n_routed_experts",
    "num_attention_heads",
    "num_experts",
    "num_experts_per_tok",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_local_experts",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "vocab_size",
)
"""Keys of a configuration that hold a size; each may be absent or null."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REF_BYTES = 64


@dataclass(frozen=True)
class ModelInputs:
    """The folders in which the objects lie that a request names, by the names of the objects."""

    config_maps: Mapping[str, Path] = field(default_factory=dict)
    claims: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class LocalModel:
    """The configuration files of a model."""

    config: bytes
    """Content of config.json."""
    quantization: bytes | None = None
    """Content of hf_quant_config.json, where there is one."""

    @property
    def digest(self) -> str:
        """Hash of the content, as of a shipped model (`dgdr_job.catalog.wheel.config_sha256`)."""
        found = hashlib.sha256()
        for content in (self.config, self.quantization or b""):
            found.update(len(content).to_bytes(8, "big") + content)
        return found.hexdigest()

    def placed_in(self, folder: Path) -> Path:
        """The folder with these files, named by their content; written below ``folder`` where it is not there yet.

        Where ``folder`` cannot be written the files go among the temporary ones of this process.
        """
        try:
            return self._written(folder / self.digest)
        except OSError:
            return self._written(Path(tempfile.mkdtemp(prefix="dgdr-model-")) / self.digest)

    def _written(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in ((CONFIG, self.config), (QUANTIZATION, self.quantization)):
            if content is not None and not _holds(folder / name, content):
                with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".part", delete=False) as part:
                    part.write(content)
                Path(part.name).replace(folder / name)
        return folder


def local_model(ref: ModelRef, inputs: ModelInputs) -> LocalModel | None:
    """The configuration of a run's model, or None where it is shipped.

    In this order: ``modelRef.config``, the shipped models, ``modelRef.cache.pvc`` at the revision (api.md section 1).

    Raises:
        Unsupported: UnknownModel, naming field, what was found and what would do.
    """
    if ref.config is not None:
        found = _of_config_map(ref.config.config_map, inputs)
        _check_remote_code(found, ref.remote_code, "modelRef.config.configMap")
        return found
    if ref.name in shipped_models():
        if is_local(ref.name):
            _refuse(
                f"modelRef.name: {ref.name} is shipped, but a folder of that name stands in the working directory, and "
                "the performance model would read that instead; start from another directory"
            )
        return None
    if ref.cache is None:
        _refuse(
            f"modelRef.name: {ref.name!r} is none of the {len(shipped_models())} models whose configuration is shipped "
            f"(dgdr catalog models), and nothing is downloaded{near(ref.name, shipped_models())}; give its config.json "
            "by modelRef.config.configMap, or its files by modelRef.cache.pvc"
        )
    found = _of_claim(ref, inputs)
    _check_remote_code(found, ref.remote_code, "modelRef.cache.pvc")
    return found


def model_of_directory(directory: Path, where: str) -> LocalModel:
    """The configuration in a directory: config.json, and hf_quant_config.json where there is one.

    Args:
        directory: of the files.
        where: the field that names it, for messages.

    Raises:
        Unsupported: UnknownModel.
    """
    if not directory.is_dir():
        _refuse(f"{where}: is no directory; name one with a {CONFIG}")
    found = _read_both(directory, "", where)
    _check_remote_code(found, "Never", where)
    return found


def _of_config_map(named: ModelConfigMap, inputs: ModelInputs) -> LocalModel:
    where = f"modelRef.config.configMap {named.name}"
    folder = _folder(inputs.config_maps, named.name, where, "--config-map")
    quantization = None
    if named.quant_key is not None:
        quantization = _file(folder, named.quant_key, f"{where}, quantKey", is_needed=True)
        _parsed(quantization or b"", f"{where}, quantKey {named.quant_key}")
    config = _file(folder, named.key, f"{where}, key", is_needed=True) or b""
    _check_config(_parsed(config, f"{where}, key {named.key}"), f"{where}, key {named.key}")
    return LocalModel(config, quantization)


def _of_claim(ref: ModelRef, inputs: ModelInputs) -> LocalModel:
    if ref.cache is None:
        raise ValueError("the model has no claim")
    pvc = ref.cache.pvc
    where = f"modelRef.cache.pvc {pvc.name}"
    folder = _folder(inputs.claims, pvc.name, where, "--mount")
    if pvc.model_path:
        return _read_both(folder, pvc.model_path.strip("/"), f"{where}, modelPath")
    return _read_both(folder, _snapshot(folder, ref, where), where)


def _snapshot(folder: Path, ref: ModelRef, where: str) -> str:
    """The folder of a model at its revision in a Hugging Face cache: a commit, or what a branch or tag points to."""
    cache, commit = f"hub/models--{ref.name.replace('/', '--')}", ref.revision or "main"
    if _COMMIT.fullmatch(commit) is None:
        pointer = f"{cache}/refs/{commit}"
        text = _file(folder, pointer, f"{where}, revision {commit}", is_needed=True, most=_REF_BYTES) or b""
        commit = text.decode(errors="replace").strip()
        if _COMMIT.fullmatch(commit) is None:
            _refuse(f"{where}: {pointer} holds {commit!r}, no commit of 40 hex digits; give modelRef.revision")
    return f"{cache}/snapshots/{commit}"


def _read_both(root: Path, below: str, where: str) -> LocalModel:
    prefix = f"{below}/" if below else ""
    config = _file(root, f"{prefix}{CONFIG}", where, is_needed=True) or b""
    _check_config(_parsed(config, f"{where}: {prefix}{CONFIG}"), f"{where}: {prefix}{CONFIG}")
    quantization = _file(root, f"{prefix}{QUANTIZATION}", where, is_needed=False)
    if quantization is not None:
        _parsed(quantization, f"{where}: {prefix}{QUANTIZATION}")
    return LocalModel(config, quantization)


def _folder(folders: Mapping[str, Path], name: str, where: str, option: str) -> Path:
    found = folders.get(name)
    if found is None:
        _refuse(f"{where}: its files are not here; on a laptop give {option} {name}=DIRECTORY")
    if not found.is_dir():
        _refuse(f"{where}: is no directory here; on a laptop give {option} {name}=DIRECTORY")
    return found


def _file(root: Path, relative: str, where: str, *, is_needed: bool, most: int | None = None) -> bytes | None:
    """The content of a file below ``root``; None: it is not there. No way out of the folder is followed."""
    most = MAX_BYTES if most is None else most
    if relative.startswith("/") or ".." in relative.split("/"):
        _refuse(f"{where}: {relative} must be a relative path without a .. segment")
    try:
        path = (root / relative).resolve(strict=True)
        if not path.is_relative_to(root.resolve(strict=True)):
            _refuse(f"{where}: {relative} is a symbolic link that leaves the folder; put the file itself there")
        if not path.is_file():
            _refuse(f"{where}: {relative} is no regular file")
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        if not is_needed:
            return None
        _refuse(f"{where}: there is no {relative}; put the model's {Path(relative).name} there")
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else str(error)
        _refuse(f"{where}: {relative} cannot be read: {reason}")
    if len(content) > most:
        _refuse(f"{where}: {relative} is larger than {most:,} bytes")
    return content


def _parsed(content: bytes, what: str) -> dict[str, Any]:
    def no_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no finite number")

    def finite(text: str) -> float:
        value = float(text)
        return value if abs(value) < float("inf") else no_number(text)

    try:
        value = json.loads(content.decode("utf-8"), parse_constant=no_number, parse_float=finite)
    except (ValueError, RecursionError) as error:
        _refuse(f"{what}: is no JSON that can be used: {error}")
    if not isinstance(value, dict):
        _refuse(f"{what}: must be a JSON object")
    return value


def _check_config(config: Mapping[str, Any], what: str) -> None:
    named = config.get("architectures")
    if not (isinstance(named, list) and named and all(isinstance(name, str) for name in named)):
        _refuse(f"{what}: architectures must name the model's class, e.g. [Qwen3ForCausalLM]; it is a model's own file")
    for part in _parts(config):
        for key in SIZES:
            value = part.get(key)
            if value is not None and not (type(value) is int and 1 <= value <= MOST):
                _refuse(f"{what}: {key} is {json.dumps(value)[:60]}, must be a whole number from 1 to {MOST:,}")


def _parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A configuration and the objects in it: a vision-language model's text part is one."""
    return [config, *(part for part in config.values() if isinstance(part, dict))]


def _check_remote_code(model: LocalModel, remote_code: RemoteCode, where: str) -> None:
    """A configuration that brings classes of its own runs only where the request trusts them."""
    if remote_code == "Never" and any(part.get("auto_map") for part in _parts(json.loads(model.config))):
        _refuse(
            f"{where}: its config.json names Python code of its own (auto_map), which modelRef.remoteCode Never does "
            "not run; set TrustCacheAndRevision (with a revision and cache.pvc) or AlwaysTrust, or leave auto_map out "
            "where the engine has the architecture itself"
        )


def _holds(path: Path, content: bytes) -> bool:
    with suppress(OSError):
        return path.read_bytes() == content
    return False


def _refuse(message: str) -> NoReturn:
    raise Unsupported(Reason.UNKNOWN_MODEL, message)
