"""`dgdr promote`: a candidate becomes a DynamoGraphDeployment. It is created, never applied over another."""

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dgdr_cli.cluster.options import Cluster, Context, DryRunOption, Kubeconfig, Namespace, Output, connected
from dgdr_cli.documents import Format, write_data
from dgdr_cli.exit_codes import FAILED, HONEST_NO, WRONG_INPUT
from dgdr_cli.exits import border, fail, note
from dgdr_cli.names import check_label

if TYPE_CHECKING:
    from dgdr_kube.errors import KubeError


def promote(
    candidate: Annotated[str, typer.Argument(help="Name of the candidate.")],
    name: Annotated[str, typer.Option(help="Name of the deployment; none of that name may exist.")],
    dry_run: DryRunOption = None,
    output: Output = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Create the DynamoGraphDeployment of a candidate, exactly as it was evaluated, or refuse it.

    Only of a run that has ended. The API server tries it first; a deployment of that name is never changed, and no
    traffic is moved.

    Exit 0: created. 2: another name, candidate or moment would do. 3: the candidate is not what was evaluated. 4:
    failed.

    Example: kubectl dgdr promote qwen3-32b-g1-4f2a-1b9c42f9 --name qwen
    """
    with border():
        check_label("--name", name)
        cluster = connected(namespace, context, kubeconfig)
        dgd = _deployment(cluster, candidate, name)
        tried = _created(cluster, dgd, dry_run=True)
        _check_kept(dgd, tried, f"candidate {candidate} is not promoted: the API server would store another deployment")
        made = tried if dry_run is not None else _created(cluster, dgd, dry_run=False)
        if dry_run is None:
            where = f"deployment {name} was created, but"
            _check_kept(dgd, made, f"{where} the API server stored another one than it had said; delete it")
        _print(made, candidate, output, tried_only=dry_run is not None)


def _deployment(cluster: Cluster, candidate: str, name: str) -> dict[str, Any]:
    """The deployment to create; ends the command where the candidate may not be promoted."""
    from dgdr_kube.errors import NotFound

    from dgdr_cli.cluster.kinds import RUN
    from dgdr_cli.cluster.lookup import candidate_named
    from dgdr_cli.cluster.objects import completed, controller, text_at
    from dgdr_cli.cluster.outcome import outcome_text
    from dgdr_cli.cluster.promotion import Case, promoted, refusal

    found = candidate_named(cluster, candidate)
    owner = text_at(controller(found), "name")
    try:
        run = cluster.kube.get(RUN, cluster.namespace, owner) if owner else None
    except NotFound:
        run = None
    refused = refusal(Case(found, run, name, cluster.namespace))
    if refused is not None:
        fail(refused.code, f"candidate {candidate} is not promoted: {refused.message}")
    end = completed(run) if run is not None else None
    if run is not None and end is not None and end.get("reason") != "SearchSucceeded":
        note(f"run {owner} ended {outcome_text(run)}")
    return promoted(found, name)


def _created(cluster: Cluster, dgd: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
    from dgdr_kube.errors import KubeError

    from dgdr_cli.cluster.kinds import DGD

    try:
        return cluster.kube.create(DGD, dgd, dry_run=dry_run)
    except KubeError as error:
        _fail(error, dgd["metadata"]["name"], cluster.namespace, dry_run=dry_run)


def _fail(error: "KubeError", name: str, namespace: str, *, dry_run: bool) -> NoReturn:
    from dgdr_kube.errors import AlreadyExists, Forbidden, Invalid, NotFound, Retryable

    from dgdr_cli.cluster.errors import is_kind_missing, verdict, what_would_do
    from dgdr_cli.cluster.kinds import DGD

    match error:
        case NotFound() if is_kind_missing(error):
            fail(
                FAILED,
                f"the cluster has no {DGD.kind} of {DGD.api_version}: install the Dynamo platform in a version that "
                "serves it; nothing was created",
            )
        case AlreadyExists():
            fail(
                WRONG_INPUT,
                f"deployment {name} exists in namespace {namespace} and is left as it is; give another --name",
            )
        case Forbidden() if error.status != HTTPStatus.UNAUTHORIZED:
            needed = f"the right to create {DGD.plural}.nvidia.com in namespace {namespace}"
            fail(FAILED, f"{error.message}; nothing was created, {what_would_do(error, needed)}")
        case Invalid():
            fail(FAILED, f"the API server refuses the deployment: {error.message}; nothing was created")
        case Retryable() if not dry_run:
            _, message = verdict(error)
            see = f"`kubectl get {DGD.plural}.nvidia.com {name} -n {namespace}` says whether it was created"
            fail(FAILED, f"{message}; {see}")
        case _:
            raise error


def _check_kept(dgd: dict[str, Any], stored: dict[str, Any], words: str) -> None:
    """End with exit 3 where the API server changes what was evaluated, as a mutating webhook can."""
    from dgdr_cli.cluster.promotion import MOST_DIFFERENCES, changes

    found = list(changes(dgd["spec"], stored.get("spec"), "/spec"))
    if found:
        fail(HONEST_NO, f"{words}: {'; '.join(found[:MOST_DIFFERENCES])}")


def _print(made: dict[str, Any], candidate: str, output: Format, *, tried_only: bool) -> None:
    from dgdr_cli.cluster.objects import name_of, without_managed_fields

    if output is not Format.TEXT:
        write_data(without_managed_fields(made), output)
        return
    how = "would be created (server dry run)" if tried_only else "created"
    sys.stdout.write(f"deployment {name_of(made)} {how} from candidate {candidate}\n")
