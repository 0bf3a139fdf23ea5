"""Names and numbers of components that the operator would refuse, checked before anything is published."""

import re
from collections.abc import Iterator

from dgdr_api.identity import dgd_name_problems

from dgdr_publisher.verify.reading import DeploymentReading, Difference

MAX_COMPONENTS = 25
_NAMES = {"agg": "worker"}
"""Component name where it is not the kind of the role."""
_COMPONENT = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def check_names(reading: DeploymentReading, namespace: str) -> Iterator[Difference]:
    """The names that the operator would refuse or that would not fit its own names (`dgdr_api.identity`)."""
    components = [(reading.frontend.component, False)]
    components += [(worker.component, worker.node_count > 1) for worker in reading.workers]
    for problem in dgd_name_problems(namespace, reading.name, components):
        yield Difference("names", "names that fit the operator's limits", problem)
    wanted = ["Frontend", *(_NAMES.get(worker.kind, worker.kind) for worker in reading.workers)]
    for expected, (name, _) in zip(wanted, components, strict=True):
        if name != expected:
            yield Difference("spec.components", f"the name {expected}, which hashes and overrides rely on", name)
    lower = [name.lower() for name, _ in components]
    for name, _ in components:
        if not _COMPONENT.fullmatch(name) or lower.count(name.lower()) > 1:
            yield Difference("spec.components", "unique names of letters, digits and hyphens", name)
    if len(components) > MAX_COMPONENTS:
        yield Difference("spec.components", f"at most {MAX_COMPONENTS}", str(len(components)))
