"""Why the catalog cannot answer.

    CatalogError
    └── Unsupported     the asked combination has no estimate, for one of `Reason`

An error of the performance model that is not listed in `dgdr_job.catalog.aic` is a defect and is never turned into one
of these.
"""

from enum import StrEnum


class Reason(StrEnum):
    """The one reason for which a combination of model, SKU, backend and version is refused."""

    UNKNOWN_MODEL = "UnknownModel"
    """Neither a shipped id nor a directory with a readable config.json of a known architecture."""
    UNKNOWN_HARDWARE = "UnknownHardware"
    """The SKU has no hardware description."""
    NO_DATA = "NoData"
    """The SKU is known, but this backend or version has no data on it."""
    MISSING_OPERATOR_DATA = "MissingOperatorData"
    """One operator of the model was never measured for these arguments."""
    UNSUPPORTED_DTYPE = "UnsupportedDtype"
    """The hardware or the model of it lacks a data type that the checkpoint needs."""
    NO_LEGAL_SHAPE = "NoLegalShape"
    """The model cannot be split like this."""
    NO_KV_FEASIBLE_SHAPE = "NoKvFeasibleShape"
    """No shape leaves room for one sequence."""
    BUDGET_TOO_SMALL = "BudgetTooSmall"
    """The GPU budget holds no worker."""
    UNSUPPORTED_TOPOLOGY = "UnsupportedTopology"
    """The deployment form does not exist for this backend."""
    UNSUPPORTED_FEATURE = "UnsupportedFeature"
    """Something asked for is not modelled."""
    INVALID_DATA = "InvalidData"
    """The performance model answered with a latency that is not a positive finite number."""


class CatalogError(Exception):
    """Anything the catalog refuses."""


class Unsupported(CatalogError):  # noqa: N818  (a verdict that callers match on, named as it is shown)
    """The combination has no estimate.

    Attributes:
        reason: The one category.
        message: What was asked, what was found and what would do.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message

    def __reduce__(self) -> tuple[type["Unsupported"], tuple[Reason, str]]:
        return (Unsupported, (self.reason, self.message))
