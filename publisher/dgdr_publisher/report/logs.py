"""The last lines of a log, without secrets."""

import re
from collections.abc import Iterable

LAST_LINES = 2000
MAX_LINE = 400
"""Characters of a line; the rest is cut, so that the logs fit their shard."""
HIDDEN = "[redacted]"

_SECRETS = (
    re.compile(r"\b(?:hf|ghp|gho|ghs|glpat|nvapi|sk|xox[bap])[_-][A-Za-z0-9_-]{8,}"),
    re.compile(r"\bA(?:KIA|SIA)[A-Z0-9]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=bearer )\S+|(?<=basic )[A-Za-z0-9+/=]{8,}"),
    re.compile(
        r"(?i)\b((?:[\w-]*[_-])?(?:token|password|passwd|(?:secret[_-]?)?(?:access[_-]?)?key|secret|signature|credential)"
        r"(?![a-z])[\"']?\s*[=:]\s*[\"']?)(?!\[redacted\])([^\s\"'&,;}]+)"
    ),
)


def last_lines(lines: Iterable[str], count: int = LAST_LINES) -> list[str]:
    """The last lines, each cut and redacted."""
    kept = list(lines)[-count:]
    return [redacted(line.rstrip("\n"))[:MAX_LINE] for line in kept]


def redacted(line: str) -> str:
    """A line with what looks like a secret replaced."""
    for pattern in _SECRETS[:-1]:
        line = pattern.sub(HIDDEN, line)
    return _SECRETS[-1].sub(rf"\g<1>{HIDDEN}", line)
