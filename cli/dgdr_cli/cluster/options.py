"""The options of every command that asks a cluster, and the cluster that they name."""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dgdr_cli.documents import Format
from dgdr_cli.names import check_label

if TYPE_CHECKING:
    from dgdr_kube.client import KubeClient

FIELD_MANAGER = "kubectl-dgdr"
"""Under this name a person owns what the commands write."""
_PANEL = "Cluster"


class DryRun(enum.StrEnum):
    """Who tries without doing."""

    SERVER = "server"


Namespace = Annotated[
    str | None,
    typer.Option("-n", "--namespace", rich_help_panel=_PANEL, help="Namespace; by default that of the context."),
]
Context = Annotated[
    str | None, typer.Option(rich_help_panel=_PANEL, help="Context of the kubeconfig; by default the current one.")
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(rich_help_panel=_PANEL, help="Kubeconfig file; by default $KUBECONFIG, else ~/.kube/config."),
]
Output = Annotated[Format, typer.Option("-o", "--output", help="How to print it.")]
DryRunOption = Annotated[
    DryRun | None, typer.Option("--dry-run", help="server: the API server says what it would do, and does nothing.")
]
Reason = Annotated[str, typer.Option(help="Why, for whoever reads it later.")]


@dataclass(frozen=True)
class Cluster:
    """Where a command works."""

    kube: "KubeClient"
    namespace: str


def connected(namespace: str | None, context: str | None, kubeconfig: Path | None) -> Cluster:
    """The cluster that the options name. Nothing is asked of it yet.

    Raises:
        NoCluster: the kubeconfig cannot be used.
    """
    if namespace is not None:
        check_label("--namespace", namespace)
    import urllib3
    from dgdr_kube.client import KubeClient
    from dgdr_kube.kubeconfig import user_context

    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # as kubectl: the kubeconfig asks for it
    found = user_context(kubeconfig, context)
    return Cluster(KubeClient(found.configuration, FIELD_MANAGER, connections=1), namespace or found.namespace)
