"""Where objects of a cluster lie on this machine: ``--config-map NAME=DIR`` and ``--mount CLAIM=DIR``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail

if TYPE_CHECKING:
    from dgdr_api.model_ref import ModelRef
    from dgdr_job.catalog.local import ModelInputs

CONFIG_MAP, MOUNT = "--config-map", "--mount"


def model_inputs(ref: "ModelRef", config_maps: Sequence[str], mounts: Sequence[str]) -> "ModelInputs":
    """The folders of what a request names; ends with exit 2 where an option names no folder, or nothing it asks for.

    Args:
        ref: the model of the request.
        config_maps: values of ``--config-map``.
        mounts: values of ``--mount``.
    """
    from dgdr_job.catalog.local import ModelInputs

    config = [] if ref.config is None else [ref.config.config_map.name]
    claims = [] if ref.cache is None else [ref.cache.pvc.name]
    return ModelInputs(
        config_maps=_folders(CONFIG_MAP, "NAME", config_maps, config, "modelRef.config.configMap.name"),
        claims=_folders(MOUNT, "CLAIM", mounts, claims, "modelRef.cache.pvc.name"),
    )


def _folders(option: str, kind: str, given: Sequence[str], named: list[str], field: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder):
            fail(WRONG_INPUT, f"{option} {text}: must be {kind}=DIRECTORY")
        if name not in named:
            asked = f"the request names {', '.join(named)}" if named else "the request names none"
            fail(WRONG_INPUT, f"{option} {text}: {field} is not {name}; {asked}")
        if name in found:
            fail(WRONG_INPUT, f"{option} {name}: is given twice")
        if not Path(folder).is_dir():
            fail(WRONG_INPUT, f"{option} {text}: {folder} is no directory")
        found[name] = Path(folder)
    return found
