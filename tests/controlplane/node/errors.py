"""What goes wrong with a node.

::

    ControlPlaneError
    └── NodeError
        ├── UnavailableError    this machine cannot run a node: not Linux, not root, packages missing
        ├── NoAnswerError       no process holds a node, or it ended before it answered
        ├── CommandError        a program that sets up the node, or builds an image, ended with an error
        └── LeftoverError       what an aborted run left cannot be removed
"""

from tests.controlplane.build import ControlPlaneError


class NodeError(ControlPlaneError):
    """The node does not start, or does not do what it was asked."""


class UnavailableError(NodeError):
    """This machine cannot run a node; the message says what would do."""


class NoAnswerError(NodeError):
    """No process holds a node, or it ended before it answered."""


class CommandError(NodeError):
    """A program ended with an error; the message carries its last lines."""


class LeftoverError(NodeError):
    """What an aborted run left cannot be removed; the message names it."""
