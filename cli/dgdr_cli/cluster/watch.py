"""`dgdr watch`: the run of a request, live, until it ends."""

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dgdr_cli import program, signals
from dgdr_cli.cluster.options import Cluster, Context, Kubeconfig, Namespace, connected
from dgdr_cli.documents import Format, write_data
from dgdr_cli.exit_codes import FAILED, INTERRUPTED, OK, WRONG_INPUT
from dgdr_cli.exits import border, fail, note
from dgdr_cli.names import check_label

if TYPE_CHECKING:
    from dgdr_cli.cluster.answer import Answered
    from dgdr_cli.cluster.following import Outage
    from dgdr_cli.cluster.screen import Screen


def watch(
    name: Annotated[str, typer.Argument(help="Name of the request.")],
    output: Annotated[
        Format, typer.Option("-o", "--output", help="json or yaml print the run when it has ended.")
    ] = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Follow the run of a request until it ends; where there is none yet, wait for it. Ctrl-C ends only the watch.

    Exit 0: candidates found. 2: there is no such request, or it is refused. 3: unsupported, or nothing feasible. 4:
    failed. 130: cancelled, superseded, or interrupted.

    Example: kubectl dgdr watch qwen3-32b
    """
    with border():
        check_label("request", name)
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_cli.cluster.outcome import exit_code, outcome_text
        from dgdr_cli.cluster.screen import standard

        try:
            with signals.ticking(), standard(data=output is not Format.TEXT) as screen:
                run = _ended_run(cluster, name, screen)
        except KeyboardInterrupt:
            again = f"`{program.called()} watch {name} -n {cluster.namespace}` follows it again"
            fail(INTERRUPTED, f"the watch ended, the search goes on; {again}")
        _print(run, output)
        code = exit_code(run)
        if code != OK:
            fail(code, f"run {run['metadata']['name']} ended: {outcome_text(run)}")


def _ended_run(cluster: Cluster, name: str, screen: "Screen") -> dict[str, Any]:
    """The run that answers the request, once it has ended."""
    from dgdr_cli.cluster.following import Outage

    outage = Outage(note)
    return _end_of(cluster, _answering_run(cluster, name, screen, outage), screen, outage)


def _answering_run(cluster: Cluster, name: str, screen: "Screen", outage: "Outage") -> "Answered":
    """The run that answers the request."""
    from dgdr_cli.cluster.answer import Answered, Refused, Waits, answer_of
    from dgdr_cli.cluster.following import states
    from dgdr_cli.cluster.kinds import REQUEST
    from dgdr_cli.cluster.lookup import request_named

    uid = request_named(cluster, name)["metadata"]["uid"]
    outage.over()
    with closing(states(cluster.kube, REQUEST, cluster.namespace, name, outage)) as seen:
        for request in seen:
            if request is None or request["metadata"]["uid"] != uid:
                fail(FAILED, f"request {name} was deleted while it was watched")
            match answer_of(request):
                case Answered() as answered:
                    return answered
                case Refused(why):
                    fail(WRONG_INPUT, f"request {name} is refused: {why}")
                case Waits(why):
                    screen.say(f"{name}: {why}")
    raise AssertionError  # the states of an object do not end


def _end_of(cluster: Cluster, answered: "Answered", screen: "Screen", outage: "Outage") -> dict[str, Any]:
    """The run, once it has ended."""
    from dgdr_cli.cluster.following import states
    from dgdr_cli.cluster.kinds import RUN
    from dgdr_cli.cluster.objects import completed
    from dgdr_cli.cluster.view import view_of

    uid, name = None, answered.run
    with closing(states(cluster.kube, RUN, cluster.namespace, name, outage)) as seen:
        for run in seen:
            if run is None or uid not in (None, run["metadata"]["uid"]):
                fail(FAILED, f"run {name} was deleted: nobody can tell how it would have ended")
            if uid is None:
                _say_whose(run, answered)
            uid = run["metadata"]["uid"]
            screen.show(view_of(run))
            if completed(run) is not None:
                return run
    raise AssertionError  # the states of an object do not end


def _say_whose(run: dict[str, Any], answered: "Answered") -> None:
    """Say that the run was not started for the request as it is now, and why it is followed all the same."""
    from dgdr_api.group import LABEL_GENERATION

    from dgdr_cli.cluster.objects import text_at

    of = text_at(run, "metadata", "labels", LABEL_GENERATION)
    if of != str(answered.generation):
        note(f"run {answered.run} is of generation {of}, the request of {answered.generation}: {answered.why}")


def _print(run: dict[str, Any], output: Format) -> None:
    from dgdr_cli.cluster.objects import refs, without_managed_fields

    if output is not Format.TEXT:
        write_data(without_managed_fields(run), output)
        return
    if refs(run, "candidateRefs"):
        sys.stdout.write(f"see them: {program.called()} candidates {run['metadata']['name']}\n")
