"""What keeps a replay from ending with a report."""


class ReplayError(Exception):
    """Base of all errors of this room.

    * `InvalidReplay`: the document asks for what cannot be replayed.
    * `InvalidTrace`: a line of the trace is wrong.
    * `InvalidTiming`: a pass would take a negative or endless time.
    * `StalledReplay`: requests are left and nothing can ever move them.
    """


class InvalidReplay(ReplayError):  # noqa: N818
    """The document asks for what cannot be replayed: the field, its value, and what would do."""


class InvalidTrace(ReplayError):  # noqa: N818
    """A line of the trace is wrong: the line, the field, its value, and what would do."""


class InvalidTiming(ReplayError):  # noqa: N818
    """A pass time is negative or not finite."""


class StalledReplay(ReplayError):  # noqa: N818
    """Requests are left and no event can move them: a defect of the simulator, never of the workload."""
