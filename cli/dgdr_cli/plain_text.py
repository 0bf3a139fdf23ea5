"""Text that others wrote, made harmless for a terminal: no escape sequence, no change of the writing direction."""

import re

_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_DIRECTION}]")
_CONTROL_IN_DATA = re.compile(f"[\x7f-\x9f{_DIRECTION}]")
"""What a writer of JSON or YAML leaves as it is: it stands in quoted strings only, which read the escape back."""


def plain(text: str) -> str:
    """The text with control characters as visible escapes; line breaks and tabs stay."""
    return _CONTROL.sub(_escape, text)


def plain_data(text: str) -> str:
    """JSON or YAML text with the same meaning and no control characters."""
    return _CONTROL_IN_DATA.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
