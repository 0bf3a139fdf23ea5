"""How far a run is, for a person: one line, or a few that stay in place on a terminal."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dgdr_cli.cluster.objects import Object, at, condition, list_at, name_of, refs, text_at
from dgdr_cli.plain_text import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

BAR_WIDTH = 40


@dataclass(frozen=True)
class RunView:
    """What is shown of a run."""

    name: str
    phase: str
    reason: str
    message: str
    done: int
    """Points of which it is known what becomes of them."""
    pool: int
    summary: str
    feasible: int
    best: str
    candidates: int
    branches: tuple[str, ...]
    eta_s: float | None


def view_of(run: Object) -> RunView:
    """What is shown of a run."""
    status = at(run, "status", default={})
    progress, said = at(status, "progress", default={}), condition(run, "Completed")
    counters = at(progress, "evaluations", default={})
    branches = list_at(progress, "branches")
    return RunView(
        name=name_of(run),
        phase=text_at(status, "phase") or "Pending",
        reason=text_at(said, "reason"),
        message=text_at(said, "message"),
        done=max(_int(counters, "scheduled") - _int(counters, "remaining") - _int(counters, "running"), 0),
        pool=sum(_int(branch, "pool") for branch in branches),
        summary=text_at(progress, "summary"),
        feasible=_int(counters, "feasible"),
        best=_best(at(status, "best", default={})),
        candidates=len(refs(run, "candidateRefs")),
        branches=tuple(
            f"{text_at(one, 'name')} {_int(one, 'rounds', 'completed')}/{_int(one, 'rounds', 'total')}"
            for one in branches
        ),
        eta_s=at(progress, "etaSeconds"),
    )


def line_of(view: RunView) -> str:
    """The run in one line, e.g. ``qwen-run-1-abcd Running EvaluatingCandidates: 120/340 evaluated, 37 feasible``."""
    facts = [
        f"{view.summary} evaluated" if view.summary else "",
        f"{view.feasible:,} feasible" if view.feasible else "",
        f"best {view.best}" if view.best else "",
        f"{view.candidates} candidates" if view.candidates else "",
    ]
    if view.message and view.message != view.summary:
        facts.append(view.message)
    known = ", ".join(fact for fact in facts if fact)
    head = " ".join(word for word in (view.name, view.phase, view.reason) if word)
    return plain(f"{head}: {known}" if known else head).replace("\n", " ")


def renderable(view: RunView) -> "RenderableType":
    """The run as lines with a bar."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2))
    left = f", about {view.eta_s:,.0f} s left" if isinstance(view.eta_s, int | float) and view.eta_s > 0 else ""
    for label, text in (
        ("evaluated", f"{view.summary or 'nothing yet'}{left}"),
        ("feasible", f"{view.feasible:,}"),
        ("best", view.best or "none yet"),
        ("candidates", f"{view.candidates} published"),
        ("rounds", ", ".join(view.branches)),
        ("says", view.message),
    ):
        if text:
            rows.add_row(Text(label, style="dim"), Text(plain(text)))
    head = Text.assemble((view.name, "bold"), f"  {plain(view.phase)}  ", (plain(view.reason), "cyan"))
    bar = ProgressBar(total=view.pool or None, completed=min(view.done, view.pool), width=BAR_WIDTH, pulse=False)
    return Group(head, bar, rows) if view.pool else Group(head, rows)


def _best(best: Object) -> str:
    where = [f"{text_at(best, 'usedGpus')} GPUs" if at(best, "usedGpus") else ""]
    where += [text_at(best, "summary") or f"{text_at(best, 'backend')} {text_at(best, 'mode')}".strip()]
    about = ", ".join(word for word in where if word)
    display = text_at(best, "display")
    return f"{display} ({about})" if display and about else display


def _int(value: Object, *path: str) -> int:
    found = at(value, *path, default=0)
    return found if isinstance(found, int) else 0
