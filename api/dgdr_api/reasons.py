"""Every condition type and reason of the contract, with one line of meaning each. Free of pydantic."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True)
class Reason:
    """One reason of one condition type."""

    type: str
    """Condition type that it belongs to."""
    status: Status
    """Status of the condition when it has this reason."""
    name: str
    """CamelCase, as it stands in the condition."""
    meaning: str
    """One line for a reader."""


ACCEPTED = "Accepted"
"""On a request: whether it became a run."""
SUPPORTED = "Supported"
"""On a run: whether performance data covers what is asked."""
VERSION_BOUND = "VersionBound"
"""On a run and a candidate: whether performance data is that of the engine in the image."""
PUBLISHED = "Published"
"""On a run: whether the chosen candidates could be rendered and are in the cluster."""
COMPLETED = "Completed"
"""On a run: whether it has ended, and how."""
EVALUATED = "Evaluated"
"""On a candidate: how it was evaluated."""
MATERIALIZED = "Materialized"
"""On a candidate: whether every evaluated value stands in its spec and was read back."""

# Accepted
RUN_CREATED = Reason(ACCEPTED, "True", "RunCreated", "The request is valid and has a run.")
UNKNOWN_HARDWARE = Reason(
    ACCEPTED, "False", "UnknownHardware", "A GPU type is not in the catalog; near names are given."
)
INVALID_OVERRIDE = Reason(ACCEPTED, "False", "InvalidOverride", "An entry of overrides is not allowed or fits nothing.")
VERSION_CHAIN_BROKEN = Reason(
    ACCEPTED,
    "False",
    "VersionChainBroken",
    "A link from the image to performance data or to a template is missing; the message names it and what would do.",
)
INVALID_SPEC = Reason(
    ACCEPTED, "False", "InvalidSpec", "A value contradicts another, or a bound that is checked in code."
)

# Supported
ALL_TUPLES = Reason(SUPPORTED, "True", "AllTuples", "Every backend and topology asked for can be evaluated.")
SOME_TUPLES = Reason(
    SUPPORTED, "True", "SomeTuples", "Some can be evaluated; the message lists the others with reasons."
)
UNKNOWN_MODEL = Reason(SUPPORTED, "False", "UnknownModel", "No configuration of the model is known.")
UNKNOWN_GPU = Reason(SUPPORTED, "False", "UnknownHardware", "The performance model does not know the GPU type.")
NO_DATA = Reason(SUPPORTED, "False", "NoData", "No performance data of this version for backend and GPU type.")
MISSING_OPERATOR_DATA = Reason(
    SUPPORTED, "False", "MissingOperatorData", "A table lacks an operation that the model needs."
)
UNSUPPORTED_DTYPE = Reason(
    SUPPORTED, "False", "UnsupportedDtype", "The GPU cannot compute in the model's number format."
)
NO_LEGAL_SHAPE = Reason(SUPPORTED, "False", "NoLegalShape", "No parallel shape fits model, backend and budget rules.")
NO_KV_FEASIBLE_SHAPE = Reason(
    SUPPORTED, "False", "NoKvFeasibleShape", "No shape has memory for the longest sequence beside the weights."
)
BUDGET_TOO_SMALL = Reason(SUPPORTED, "False", "BudgetTooSmall", "The least deployment takes more GPUs than the budget.")
UNSUPPORTED_TOPOLOGY = Reason(
    SUPPORTED, "False", "UnsupportedTopology", "The backend cannot be deployed in this topology."
)
UNSUPPORTED_FEATURE = Reason(
    SUPPORTED, "False", "UnsupportedFeature", "A feature asked for has no form in this version."
)

# VersionBound
BOUND = Reason(VERSION_BOUND, "True", "Bound", "Performance data is that of the engine in the image.")
BOUND_WITH_BORROWED_DATA = Reason(
    VERSION_BOUND,
    "True",
    "BoundWithBorrowedData",
    "As Bound, but the named tables hold rows of another version or backend.",
)
PERF_DATA_PINNED = Reason(
    VERSION_BOUND, "False", "PerfDataPinned", "The request pins data of another version than the engine in the image."
)

# Published
ALL_PUBLISHED = Reason(PUBLISHED, "True", "AllPublished", "Every chosen candidate is in the cluster.")
SOME_UNRENDERABLE = Reason(
    PUBLISHED, "True", "SomeUnrenderable", "Some points could not be rendered; others took their place."
)
NOTHING_TO_PUBLISH = Reason(PUBLISHED, "False", "NothingToPublish", "No point was feasible.")
NOTHING_RENDERED = Reason(PUBLISHED, "False", "NothingRenderable", "Points were feasible, but none could be rendered.")

# Completed
PENDING = Reason(COMPLETED, "False", "Pending", "The run waits for its pod, for quota or for its turn.")
PREFLIGHT = Reason(COMPLETED, "False", "Preflight", "The search finds out what can be evaluated.")
EVALUATING_CANDIDATES = Reason(COMPLETED, "False", "EvaluatingCandidates", "Candidates are being evaluated.")
PUBLISHING = Reason(COMPLETED, "False", "Publishing", "Everything is evaluated; candidates are being published.")
SEARCH_SUCCEEDED = Reason(COMPLETED, "True", "SearchSucceeded", "The search ended with candidates.")
BUDGET_EXHAUSTED = Reason(COMPLETED, "True", "BudgetExhausted", "A limit of the search was reached; results are kept.")
NO_FEASIBLE_CANDIDATE = Reason(COMPLETED, "True", "NoFeasibleCandidate", "Nothing in the pool meets the request.")
UNSUPPORTED = Reason(COMPLETED, "True", "Unsupported", "Nothing that is asked for can be evaluated; see Supported.")
NOTHING_RENDERABLE = Reason(COMPLETED, "True", "NothingRenderable", "Points were feasible, but none could be rendered.")
SEARCH_FAILED = Reason(COMPLETED, "True", "SearchFailed", "The search ended with an error of its own.")
POD_REJECTED = Reason(COMPLETED, "True", "PodRejected", "The cluster refuses the pod, and waiting cannot help.")
DEADLINE_EXCEEDED = Reason(
    COMPLETED, "True", "DeadlineExceeded", "The Job's deadline passed; what was published stays."
)
SUPERSEDED = Reason(COMPLETED, "True", "Superseded", "A newer generation of the request took its place.")
CANCELLED = Reason(COMPLETED, "True", "Cancelled", "A user cancelled the run; what was published stays.")

# Evaluated
REPLAYED = Reason(EVALUATED, "True", "Replayed", "The candidate was simulated under the workload.")
PARTIALLY_MODELLED = Reason(
    EVALUATED,
    "True",
    "PartiallyModelled",
    "It was evaluated, but a feature that it uses is not modelled; see the message.",
)
STATIC_ESTIMATE = Reason(
    EVALUATED, "True", "StaticEstimate", "The candidate was rated by rate matching, not simulated."
)

# Materialized
RENDERED_AND_VERIFIED = Reason(
    MATERIALIZED, "True", "RenderedAndVerified", "Every evaluated value stands in the spec and was read back from it."
)

REASONS: tuple[Reason, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Reason))
"""All reasons, in the order above."""

HONEST_OUTCOMES: frozenset[str] = frozenset(
    reason.name
    for reason in (SEARCH_SUCCEEDED, BUDGET_EXHAUSTED, NO_FEASIBLE_CANDIDATE, UNSUPPORTED, NOTHING_RENDERABLE)
)
"""Reasons of Completed=True with which the phase is Succeeded: the search answered."""


def reasons_of(type: str) -> Iterator[Reason]:  # noqa: A002
    """Yield the reasons of one condition type."""
    return (reason for reason in REASONS if reason.type == type)


def reason_named(type: str, name: str) -> Reason:  # noqa: A002
    """Find a reason by condition type and name.

    Raises:
        KeyError: there is none.
    """
    for reason in reasons_of(type):
        if reason.name == name:
            return reason
    known = ", ".join(reason.name for reason in reasons_of(type))
    raise KeyError(f"condition {type} has no reason {name}; it has {known}")
