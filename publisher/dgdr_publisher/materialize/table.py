"""Builds the table: flattens the evaluated documents and applies one rule to each leaf.

The place of a value is looked up in the *rendered* deployment and its text compared, so a template that drops or
changes an option makes an error here. A leaf without a rule is an error too, never a silent default.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dgdr_api.base import wire
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.candidate_resource import MaterializedValue
from dgdr_api.canonical import canonical_json
from dgdr_api.conditions import cut

from dgdr_publisher.errors import UnmappedValueError
from dgdr_publisher.materialize.role_rules import ROLE_RULES, TIMING
from dgdr_publisher.materialize.site import Destination, Landing, NotThereError, Reason, Site, sites

_INPUT = Reason("evaluation input; no field of a deployment")
_REASONS: Mapping[str, Reason] = {
    "seed": _INPUT,
    "workload": _INPUT,
    "sla": Reason("bound of the search; no field of a deployment"),
    "parameters": Reason("evaluation input; kept in the candidate's spec.parameters"),
    "kvTransfer": Reason("model of the interconnect; how KV moves is in the transfer option of each role"),
    "hostOverheadMs": Reason("overhead that the data leaves out; no deployment setting causes it"),
}
_UNUSED_ROUTER = Reason("weighs cached and waiting work; round robin uses neither")
_MAX_VALUE = 1024


def materialize(dgd: Mapping[str, Any], evaluated: EvaluatedCandidate) -> tuple[MaterializedValue, ...]:
    """Every evaluated value of a candidate with its destination in a deployment, or a reason.

    A value with several places has one row for each.

    Raises:
        UnmappedValueError: a value without a rule, or one that is not at its place.
    """
    rows: list[MaterializedValue] = []
    for parameter, value, landings in _landings(dgd, evaluated):
        text = cut(canonical_json(value), _MAX_VALUE)
        for landing in landings:
            match landing:
                case Destination(pointer):
                    rows.append(MaterializedValue(parameter=parameter, value=text, destination=pointer))
                case Reason(why):
                    rows.append(MaterializedValue(parameter=parameter, value=text, reason=why))
    return tuple(rows)


def _landings(dgd: Mapping[str, Any], evaluated: EvaluatedCandidate) -> Iterator[tuple[str, Any, list[Landing]]]:
    candidate, spec = evaluated.candidate, evaluated.replay_spec
    try:
        places = list(sites(dgd, spec.roles))
    except NotThereError as error:
        raise UnmappedValueError("topology", candidate.topology, str(error)) from error
    whole = {"model": candidate.model, **wire(spec), "parameters": candidate.parameters}
    for name in ("apiVersion", "kind", "roles"):
        whole.pop(name)
    for parameter, value in leaves(whole):
        if value is None and not parameter.startswith("parameters."):
            continue  # the ReplaySpec names what is not set; nothing was evaluated there
        yield parameter, value, _checked(parameter, value, lambda p=parameter, v=value: _whole(p, v, dgd, places))
    for site in places:
        for name, value in leaves(wire(site.role)):
            parameter = f"{site.role.kind}.{name}"
            yield parameter, value, _checked(parameter, value, lambda n=name, v=value, s=site: _role(n, v, s))


def leaves(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of every leaf of a document; list items by their index."""
    for key, value in document.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{name}.")
        elif isinstance(value, list | tuple):
            yield from leaves({str(index): item for index, item in enumerate(value)}, f"{name}.")
        else:
            yield name, value


def _role(name: str, value: Any, site: Site) -> list[Landing]:  # noqa: ANN401 - any leaf of the document
    if name == "backend":
        return [_framework(value, site.dgd)]
    if name.startswith("timing."):
        return [TIMING]
    rule = ROLE_RULES.get(site.role.backend, {}).get(name)
    if rule is None:
        raise NotThereError(f"no rule of {site.role.backend} says where it lands")
    return rule(value, site)


def _whole(name: str, value: Any, dgd: Mapping[str, Any], places: list[Site]) -> list[Landing]:  # noqa: ANN401
    head, _, rest = name.partition(".")
    if head in _REASONS:
        return [_REASONS[head]]
    match name:
        case "model":
            return [place.option("--served-model-name", value) for place in places]
        case "topology":
            return [place.at("type") for place in places]
        case "encoder" if value == "Inline":
            return [Reason("Inline: there is no component of its own")]
        case "router.mode" if value == "roundRobin":
            frontend = Site(dgd=dgd, index=_frontend(dgd), role=places[0].role)
            return [frontend.option("--router-mode", "round-robin")]
        case _ if head == "router" and rest != "mode":
            return [_UNUSED_ROUTER]
        case _:
            raise NotThereError("no rule says where it lands")


def _frontend(dgd: Mapping[str, Any]) -> int:
    types = [component.get("type") for component in dgd["spec"]["components"]]
    if types.count("frontend") != 1:
        raise NotThereError(f"{types.count('frontend')} components have type frontend, not one")
    return types.index("frontend")


def _framework(value: str, dgd: Mapping[str, Any]) -> Destination:
    found = dgd["spec"].get("backendFramework")
    if found != value:
        raise NotThereError(f"spec.backendFramework is {found}")
    return Destination("/spec/backendFramework")


def _checked(parameter: str, value: Any, rule: Any) -> list[Landing]:  # noqa: ANN401 - any leaf, a closure over it
    try:
        landings: list[Landing] = rule()
    except NotThereError as error:
        raise UnmappedValueError(parameter, value, str(error)) from error
    return landings
