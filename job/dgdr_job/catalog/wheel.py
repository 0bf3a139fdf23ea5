"""The performance model's package seen from outside, without importing it."""

import difflib
import hashlib
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import version
from pathlib import Path

from dgdr_job.catalog.errors import Reason, Unsupported

_SUFFIX = "_config.json"
_QUANT_SUFFIX = "_hf_quant_config.json"


@cache
def wheel_version() -> str:
    """Version of aiconfigurator-core, part of every cache key."""
    return version("aiconfigurator-core")


@cache
def wheel_path() -> Path:
    """Directory of the installed package, found without running it.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    spec = PathFinder.find_spec("aiconfigurator_core")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("aiconfigurator_core is not installed", name="aiconfigurator_core")
    return Path(spec.origin).parent


@cache
def shipped_models() -> tuple[str, ...]:
    """Ids whose configuration the package carries, sorted; files are named ``org--name_config.json``."""
    names = (path.name for path in (wheel_path() / "model_configs").iterdir())
    return tuple(
        sorted(
            name.removesuffix(_SUFFIX).replace("--", "/", 1)
            for name in names
            if name.endswith(_SUFFIX) and not name.endswith(_QUANT_SUFFIX)
        )
    )


@cache
def shipped_skus() -> tuple[str, ...]:
    """SKUs with a hardware description, sorted."""
    no_sku = {"attention_lane_defaults", "perf_data_reuse_manifest", "query_versions"}
    return tuple(sorted(p.stem for p in (wheel_path() / "systems").glob("*.yaml") if p.stem not in no_sku))


def near(name: str, known: tuple[str, ...]) -> str:
    """Up to three known names that resemble the asked one, as the end of a sentence; empty when none does."""
    folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)
    return f"; did you mean {', '.join(folded[match] for match in matches)}?" if matches else ""


def is_local(model: str) -> bool:
    """Whether the name is a directory; a directory wins over an equal id, as in the performance model."""
    return Path(model).is_dir()


def config_sha256(model: str) -> str:
    """Hash of a model's configuration files.

    Args:
        model: Shipped id or local directory.

    Raises:
        Unsupported: UnknownModel: neither shipped nor a directory with a config.json. No network is ever tried.
    """
    if is_local(model):
        files = [Path(model) / "config.json", Path(model) / "hf_quant_config.json"]
        if not files[0].is_file():
            raise Unsupported(Reason.UNKNOWN_MODEL, f"the directory {model} has no config.json")
    elif model in shipped_models():
        stem = wheel_path() / "model_configs" / model.replace("/", "--", 1)
        files = [stem.with_name(stem.name + _SUFFIX), stem.with_name(stem.name + _QUANT_SUFFIX)]
    else:
        raise Unsupported(
            Reason.UNKNOWN_MODEL,
            f"{model!r} is neither a local directory with a config.json nor one of the {len(shipped_models())} models "
            f"whose configuration is shipped (nothing is downloaded){near(model, shipped_models())}",
        )
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
