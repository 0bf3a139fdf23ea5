"""The page docs/rbac.md: every right of every role, read from the rule files that the chart's templates include."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

RULES = Path(__file__).parent.parent / "charts" / "dgdr" / "rbac"
INTRODUCTION = """# Rights

Generated from `charts/dgdr/rbac/` by `make crds`. NAME is the release's name (`fullnameOverride`). Nobody may read a
Secret, and the sweeper has no token at all. Who may create Jobs reaches by their pods what any pod of the namespace can
reach: Kubernetes has no narrower right. `namespaces` keeps the operator to those that are served.
"""
ROLES = {
    "operator": (
        "The operator: `NAME-operator`",
        "A ClusterRole where all namespaces are served; else a Role in each of `namespaces`, and none in the cluster.",
    ),
    "lease": ("The operator's Lease: `NAME-operator-lease`", "A Role in the release's namespace."),
    "publisher": (
        "The publisher of a run: `NAME-publisher`",
        "A ClusterRole. Each run has an account that is bound to it, in the run's namespace, and both go with the run.",
    ),
    "view": (
        "People who read: `NAME-view`",
        "A ClusterRole, added to the cluster's own roles view, edit and admin by its label.",
    ),
    "edit": (
        "People who search: `NAME-edit`",
        "A ClusterRole, added to the cluster's own roles edit and admin by its label.",
    ),
    "promote": (
        "People who promote: `NAME-promote`",
        "A ClusterRole that is added to none: bind it, beside view, to who may create deployments.",
    ),
}
"""Title and scope of each role, by the name of its file."""


@dataclass(frozen=True)
class Rule:
    """One rule of a role."""

    group: str
    """API group; empty: the core group."""
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    """Objects that it is about; empty: all."""


def rbac_page() -> str:
    """Every role with its rules."""
    return INTRODUCTION + "".join(section(role) for role in ROLES)


def section(role: str) -> str:
    """One role: where it holds, and its rules as a table."""
    title, scope = ROLES[role]
    head = f"\n## {title}\n\n{scope}\n\n| API group | resources | verbs | why |\n| --- | --- | --- | --- |\n"
    return head + "".join(_row(rule) for rule in rules(role))


def rules(role: str) -> Iterator[Rule]:
    """Read a rule file: a list of rules of one API group each, above each the line that says why.

    Raises:
        ValueError: a rule has no such line, or more than one group.
    """
    text = (RULES / f"{role}.yaml").read_text()
    found, whys = yaml.safe_load(text), re.findall(r"^# (.+)\n- ", text, re.MULTILINE)
    if len(whys) != len(found):
        raise ValueError(f"{role}.yaml: each rule needs one line above it that says why")
    for rule, why in zip(found, whys, strict=True):
        (group,) = rule["apiGroups"]
        names = tuple(
            re.sub(r'\{\{ include "dgdr\.(\w+)" \. \}\}', r"NAME-\1", name) for name in rule.get("resourceNames", ())
        )
        yield Rule(group, tuple(rule["resources"]), tuple(rule["verbs"]), why, names)


def _row(rule: Rule) -> str:
    resources = ", ".join(rule.resources) + (f" named {', '.join(rule.names)}" if rule.names else "")
    return f"| {rule.group or 'core'} | {resources} | {', '.join(rule.verbs)} | {rule.why} |\n"
