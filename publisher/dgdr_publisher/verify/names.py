"""The name rules of the operator, checked before anything is published (rendering.md of the project, section 2).

Grove and the operator's webhook allow 45 characters for deployment and component together; the operator shortens the
deployment's part to no less than 8. Workers over several nodes add the component once more, with ``-ldr`` or ``-wkr``.
"""

import re
from collections.abc import Sequence

from dgdr_publisher.verify.reading import DeploymentReading, Difference

GROVE_LIMIT = 45
SHORTEST_DEPLOYMENT = 8
CLIQUE_SUFFIX = len("-ldr")
SELECTOR_LIMIT = 54
"""Deployment, a hyphen and the longest component: leaves room for ``-`` and 8 hex digits in 63."""
MAX_COMPONENTS = 25
_COMPONENT = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?")
_DEPLOYMENT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def check_names(reading: DeploymentReading) -> list[Difference]:
    """The names that the operator would refuse."""
    nodes = [(reading.frontend.component, 1), *((worker.component, worker.node_count) for worker in reading.workers)]
    found = [*_deployment_name(reading.name, [name for name, _ in nodes]), *_component_names(nodes)]
    if len(nodes) > MAX_COMPONENTS:
        found.append(Difference("spec.components", f"at most {MAX_COMPONENTS}", str(len(nodes))))
    return found


def _deployment_name(name: str, components: Sequence[str]) -> list[Difference]:
    found = []
    if not _DEPLOYMENT.fullmatch(name):
        found.append(Difference("metadata.name", "a DNS label", name))
    length = len(name) + 1 + max(len(component) for component in components)
    if length > SELECTOR_LIMIT:
        found.append(
            Difference("metadata.name", f"with the longest component at most {SELECTOR_LIMIT} characters", str(length))
        )
    return found


def _component_names(nodes: Sequence[tuple[str, int]]) -> list[Difference]:
    found = []
    lower = [name.lower() for name, _ in nodes]
    for name, node_count in nodes:
        if not _COMPONENT.fullmatch(name) or lower.count(name.lower()) > 1:
            found.append(Difference("spec.components", "unique names of letters, digits and hyphens", name))
        budget = len(name) if node_count == 1 else 2 * len(name) + CLIQUE_SUFFIX
        if SHORTEST_DEPLOYMENT + budget > GROVE_LIMIT:
            limit = GROVE_LIMIT - SHORTEST_DEPLOYMENT
            longest = limit if node_count == 1 else (limit - CLIQUE_SUFFIX) // 2
            found.append(
                Difference(f"{name}.name", f"at most {longest} characters on {node_count} nodes", str(len(name)))
            )
    return found
