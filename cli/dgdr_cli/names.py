"""Names that a person gives, checked before they stand in a path or an object."""

import re

from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import fail


def check_label(what: str, name: str) -> None:
    """End with exit 2 where a name is no DNS label.

    Args:
        what: the option or argument that gave it.
        name: the name.
    """
    from dgdr_api.identity import MAX_LABEL
    from dgdr_api.metadata import DNS_LABEL

    if len(name) > MAX_LABEL or re.fullmatch(DNS_LABEL, name) is None:
        fail(
            WRONG_INPUT,
            f"{what} {name!r}: must be a DNS label: lower-case letters, digits and hyphens, "
            f"a letter or digit first and last, 1 to {MAX_LABEL} characters",
        )
