"""What a search is told on the command line: a request or a native configuration, folders, and single values."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail

if TYPE_CHECKING:
    from dgdr_cli.requests import Admitted

RequestFile = Annotated[
    Path | None, typer.Argument(help="Request file; - reads standard input. Or give --config.", metavar="[REQUEST]")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Native configuration in place of a request: dgdr schema config."),
]
ConfigMaps = Annotated[
    list[str] | None,
    typer.Option("--config-map", metavar="NAME=DIR", help="Directory of the ConfigMap that modelRef.config names."),
]
Mounts = Annotated[
    list[str] | None,
    typer.Option("--mount", metavar="CLAIM=DIR", help="Directory of the claim that modelRef.cache names."),
]


@dataclass(frozen=True)
class CommandLine:
    """Values that the command line sets, each None where it does not."""

    fidelity: str | None = None
    seed: int | None = None
    parallel: int | None = None
    max_duration: str | None = None

    @property
    def of_request(self) -> dict[tuple[str, ...], Any]:
        """By path below the spec of a request."""
        return _given(
            {
                ("search", "fidelity"): self.fidelity,
                ("search", "parameters", "sweep", "seed"): self.seed,
                ("search", "budget", "parallelEvaluations"): self.parallel,
                ("search", "budget", "maxDuration"): self.max_duration,
            }
        )

    @property
    def of_config(self) -> dict[tuple[str, ...], Any]:
        """By path in a native configuration."""
        return _given(
            {
                ("sweep", "fidelity"): self.fidelity,
                ("sweep", "seed"): self.seed,
                ("sweep", "parallel_evals"): self.parallel,
                ("sweep", "max_seconds"): _seconds(self.max_duration),
            }
        )


def asked_of(
    request: Path | None,
    config: Path | None,
    config_maps: list[str] | None,
    mounts: list[str] | None,
    line: CommandLine = CommandLine(),
) -> "tuple[Path, Admitted]":
    """The file that is searched for, and what it asks; ends with exit 2 where that may not run."""
    if request is not None and config is not None:
        fail(WRONG_INPUT, f"{request} and --config {config} are two searches; give a request or a configuration")
    if config is not None:
        from dgdr_cli.native import admitted_config

        if config_maps or mounts:
            fail(WRONG_INPUT, "--config-map and --mount belong to a request; use search_space.model_config_path")
        return config, admitted_config(config, line.of_config)
    if request is None:
        fail(WRONG_INPUT, "nothing to search: give a request file, or a native configuration by --config FILE")
    from dgdr_cli.requests import admitted

    return request, admitted(request, line.of_request, config_maps=config_maps or (), mounts=mounts or ())


def _given(values: dict[tuple[str, ...], Any]) -> dict[tuple[str, ...], Any]:
    return {place: value for place, value in values.items() if value is not None}


def _seconds(duration: str | None) -> float | None:
    """The seconds of ``--max-duration``, by the contract's own rule."""
    if duration is None:
        return None
    from dgdr_api.duration import Duration, seconds
    from pydantic import TypeAdapter, ValidationError

    try:
        return seconds(TypeAdapter(Duration).validate_python(duration))
    except ValidationError:
        fail(WRONG_INPUT, f"--max-duration {duration}: must be a duration above 0, e.g. 90s or 1h30m")
