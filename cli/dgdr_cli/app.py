"""The sub-commands of `dgdr`, each in a module of its own that imports what it needs when it runs."""

import sys
from typing import Annotated

import typer

from dgdr_cli import catalog, coverage, program, render, replay, schema, search, space, verify
from dgdr_cli.cluster import commands

app = typer.Typer(
    name="dgdr",
    help="Find the configuration that serves a model best on your GPUs, as a DynamoGraphDeployment.",
    no_args_is_help=True,
    add_completion=program.called() == program.DGDR,  # kubectl completes its plugins in a way of its own
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("search")(search.search)
app.command("coverage")(coverage.coverage)
app.command("space")(space.space)
app.command("replay")(replay.replay)
app.command("render")(render.render)
app.command("verify")(verify.verify)
app.command("catalog")(catalog.catalog)
app.command("schema")(schema.schema)
commands.add_to(app)


def _version(wanted: bool) -> None:  # noqa: FBT001 - the form of a typer callback
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"dgdr {version('dgdr')}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[  # noqa: FBT002
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Find the configuration that serves a model best on your GPUs, as a DynamoGraphDeployment."""
