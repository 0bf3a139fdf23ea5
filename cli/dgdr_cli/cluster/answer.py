"""What became of a request so far: which run answers it, or why none does. Pure."""

from dataclasses import dataclass

from dgdr_cli.cluster.objects import Object, at, condition, refs, text_at


@dataclass(frozen=True)
class Waits:
    """There is no run of this generation yet."""

    why: str


@dataclass(frozen=True)
class Refused:
    """There will be none."""

    why: str


@dataclass(frozen=True)
class Answered:
    """This run answers it."""

    run: str
    generation: int
    """Of the request; that of the run may be an older one."""
    why: str
    """In the operator's words."""


def answer_of(request: Object) -> Waits | Refused | Answered:
    """What the operator says about the current generation of a request."""
    generation, observed = at(request, "metadata", "generation"), at(request, "status", "observedGeneration")
    active = text_at(request, "status", "activeRunRef", "name")
    if observed != generation:
        before = f": run {active} ends first" if active else ""
        return Waits(f"generation {generation} waits for the operator{before}")
    accepted = condition(request, "Accepted")
    if accepted.get("status") == "False":
        return Refused(f"{text_at(accepted, 'reason')}: {text_at(accepted, 'message')}")
    run = active or next(iter(refs(request, "recentRunRefs")), "")
    if run:
        return Answered(run, generation, text_at(accepted, "message"))
    if at(request, "spec", "suspend"):
        return Waits("the request is suspended: nothing is started until spec.suspend is false")
    return Waits(f"generation {generation} has no run yet")
