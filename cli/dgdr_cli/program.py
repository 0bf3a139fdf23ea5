"""What the program is called: `dgdr`, or `kubectl dgdr` when kubectl runs it as its plugin."""

DGDR = "dgdr"
KUBECTL_DGDR = "kubectl dgdr"

_called = DGDR


def call(name: str) -> None:
    """Say at the start how the program was called."""
    global _called  # noqa: PLW0603 - a fact about the process
    _called = name


def called() -> str:
    """How to call the program: for its usage, and for what it tells a person to do next."""
    return _called
