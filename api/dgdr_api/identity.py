"""Names and hashes of runs, candidates and deployments. Keys of labels and annotations are in `dgdr_api.group`."""

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from dgdr_api.base import wire
from dgdr_api.canonical import sha256_hex
from dgdr_api.errors import NameTooLong
from dgdr_api.run import RunSpec

MAX_NAME = 52
"""Longest name of a run or candidate: a Job of that name leaves room for its pods' suffix in 63."""
MAX_LABEL = 63
SAFE_DGD_NAME = 22
"""With our component names a DGD name of this length passes every check, multinode ones included."""
MAX_DGD_AND_COMPONENT = 54
"""Longest ``<dgd>-<component>``, so that ``-<8 hex>`` still fits a Service name of 63."""
GROVE_LIMIT = 45
GROVE_LEAST_NAME = 8
"""Dynamo's operator shortens the DGD name in Grove's names down to this."""
GROVE_CLIQUE_SUFFIX = len("-ldr")

_DNS_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")

FIRST_GENERATION = 1
"""Generation of every run on a laptop."""


def laptop_uid(namespace: str, name: str) -> str:
    """Return the uid that an object has on a laptop, in the form of a UUID.

    Its digits are the first 32 of the SHA-256 of ``<namespace>/<name>``.
    """
    return str(uuid.UUID(hashlib.sha256(f"{namespace}/{name}".encode()).hexdigest()[:32]))


def run_name(request_name: str, generation: int, request_uid: str) -> str:
    """Return ``<request>-run-<generation>-<4 hex of the request's uid>``, at most 52 characters."""
    return _bounded(request_name, f"-run-{generation}-{_uid_digits(request_uid)}", MAX_NAME)


def candidate_name(request_name: str, generation: int, request_uid: str, point: str) -> str:
    """Return ``<request>-g<generation>-<4 hex of its uid>-<8 hex of the point hash>``, at most 52 characters."""
    return _bounded(request_name, f"-g{generation}-{_uid_digits(request_uid)}-{point[:8]}", MAX_NAME)


def input_hash(spec: RunSpec) -> str:
    """Return the hash of what decides a search: 32 hex of the run's spec.

    Image, parallelEvaluations and overrides.profilingJob are left out: they change how it runs, not what it finds.
    Computed once, when the run is created; a spec that was read back may have lost what the hash was made of.
    """
    value = wire(spec)
    value.pop("image", None)
    value["search"]["budget"].pop("parallelEvaluations", None)
    value["overrides"].pop("profilingJob", None)
    return sha256_hex(value, 32)


def point_hash(candidate_spec: Mapping[str, Any]) -> str:
    """Return 16 hex of a candidate's whole spec: the DGD's fields and ``parameters``."""
    return sha256_hex(candidate_spec, 16)


def dgd_spec_hash(candidate_spec: Mapping[str, Any]) -> str:
    """Return 16 hex of what a candidate would deploy: its spec without ``parameters``."""
    return sha256_hex(deployable(candidate_spec), 16)


def deployable(candidate_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the DGD spec inside a candidate's spec."""
    return {name: value for name, value in candidate_spec.items() if name != "parameters"}


def safe_dgd_name(request_name: str, point: str, namespace: str = "default") -> str:
    """Return a name for the DGD of a candidate that passes every length check: ``<request>-<8 hex of the point hash>``.

    Raises:
        NameTooLong: the namespace leaves no room for any name.
    """
    room = min(SAFE_DGD_NAME, MAX_LABEL - 1 - len(namespace))
    suffix = f"-{point[:8]}"
    if room <= len(suffix):
        raise NameTooLong(
            f"namespace {namespace} has {len(namespace)} characters, which leaves {max(room, 0)} for a deployment: "
            f"with it and a hyphen a name must fit {MAX_LABEL}; use one of at most {MAX_LABEL - 2 - len(suffix)}"
        )
    return request_name[: room - len(suffix)].rstrip("-") + suffix


def dgd_name_problems(namespace: str, name: str, components: Sequence[tuple[str, bool]]) -> list[str]:
    """Return why a DGD of this name would be refused or break; empty: nothing.

    Args:
        namespace: where it would be created.
        name: its name.
        components: name of each component, and whether it spans nodes; empty when they are not known yet.
    """
    problems = []
    if _DNS_LABEL.fullmatch(name) is None:
        problems.append(f"name {name!r} must be a DNS label: lower-case letters, digits and hyphens between")
    if len(namespace) + 1 + len(name) > MAX_LABEL:
        problems.append(
            f"namespace {namespace} and name {name} take {len(namespace) + 1 + len(name)} characters together; "
            f"the label nvidia.com/dynamo-namespace holds {MAX_LABEL}"
        )
    longest = max((component for component, _ in components), key=len, default="")
    if not longest and len(name) > MAX_DGD_AND_COMPONENT - len("-c"):
        problems.append(
            f"name {name} has {len(name)} characters; with any component at most {MAX_DGD_AND_COMPONENT - len('-c')} "
            "fit the name of a Service"
        )
    elif len(name) + 1 + len(longest) > MAX_DGD_AND_COMPONENT:
        problems.append(
            f"name {name} and component {longest} take {len(name) + 1 + len(longest)} characters together; "
            f"at most {MAX_DGD_AND_COMPONENT} fit the name of a Service"
        )
    for component, multinode in components:
        budget = len(component) + (len(component) + GROVE_CLIQUE_SUFFIX if multinode else 0)
        if GROVE_LEAST_NAME + budget > GROVE_LIMIT:
            kind = "component that spans nodes" if multinode else "component"
            limit = (GROVE_LIMIT - GROVE_LEAST_NAME - GROVE_CLIQUE_SUFFIX) // 2 if multinode else GROVE_LIMIT - 8
            problems.append(f"{kind} {component} has {len(component)} characters; Grove takes at most {limit}")
    return problems


def _uid_digits(uid: str) -> str:
    return "".join(digit for digit in uid.lower() if digit in "0123456789abcdef")[:4].ljust(4, "0")


def _bounded(request_name: str, suffix: str, limit: int) -> str:
    name = request_name + suffix
    if len(name) <= limit:
        return name
    digest = f"-{hashlib.sha256(request_name.encode()).hexdigest()[:8]}"
    return request_name[: limit - len(suffix) - len(digest)].rstrip("-") + digest + suffix
