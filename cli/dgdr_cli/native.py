"""A native configuration file (``--config``) as what a request file is to the other commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgdr_cli.documents import about, named, read_mapping
from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail, note
from dgdr_cli.requests import Admitted, with_changes

if TYPE_CHECKING:
    from dgdr_job.catalog.local import LocalModel
    from dgdr_job.search.config import SmartSearchConfig

FIELD = "search_space.model_config_path"


def admitted_config(path: Path, changes: Mapping[tuple[str, ...], Any] | None = None) -> Admitted:
    """Read a configuration and admit the request that asks the same; ends with exit 2 where it may not run.

    Args:
        path: file of the configuration.
        changes: values by path, e.g. ``("sweep", "seed")``, that the command line sets.

    Raises:
        Unsupported: UnknownModel: the model's own files cannot be used.
    """
    from dgdr_api.admission import DATA_ALONE_POLICIES, NATIVE_POLICIES, Rejected, admit
    from dgdr_job.catalog.local import ModelInputs
    from dgdr_job.search.native import bound_by_data_alone, config_map_name, key_of, read_config, request_of_config

    document = with_changes(read_mapping(path), changes or {})
    with about(path):
        config = read_config(document)
    local, directory = _local_model(config, path)
    digest = None if local is None else local.digest
    with about(path):
        request = request_of_config(config, local_digest=digest)
    alone = bound_by_data_alone(config)
    verdict = admit(request, policies=DATA_ALONE_POLICIES if alone else NATIVE_POLICIES)
    if isinstance(verdict, Rejected):
        told = "\n".join(f"  {key_of(each.field)}: {each.message}" for each in verdict.rejections)
        fail(WRONG_INPUT, f"{named(path)}: is not accepted ({verdict.reason.name})\n{told}")
    if alone:
        note(
            "note: no known Dynamo runtime carries these engines, so nothing will be rendered; points.parquet has "
            "the result; name an image in runtime.image to get deployments"
        )
    inputs = ModelInputs() if digest is None else ModelInputs(config_maps={config_map_name(digest): directory})
    return Admitted(request, verdict.spec, inputs)


def _local_model(config: "SmartSearchConfig", path: Path) -> "tuple[LocalModel | None, Path]":
    """The model's own files, beside the configuration or at an absolute path."""
    from dgdr_job.catalog.local import model_of_directory

    given = config.search_space.model_config_path
    if given is None:
        return None, Path()
    if ".." in Path(given).parts:
        fail(WRONG_INPUT, f"{named(path)}: {FIELD}: {given} must be a path without a .. segment")
    directory = path.parent / given
    return model_of_directory(directory, f"{FIELD} {given}"), directory
