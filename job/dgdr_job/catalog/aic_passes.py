"""What the passes of one worker are made of: the operators whose time follows from each sequence, and all others."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import aiconfigurator_core
from aiconfigurator_core.sdk import engine
from dgdr_api.shape import Shape

from dgdr_job.catalog.errors import Reason, Unsupported

if TYPE_CHECKING:
    from dgdr_job.catalog.aic import PerformanceModel

_PROBE_TOKENS, _NEAR, _FAR = 512, 512, 8192
"""New tokens of the passes, and two lengths of context, that tell which operators look at the context."""


class PassParts:
    """One worker shape, asked for the parts of its passes.

    Attention looks at each sequence apart. Everything else takes the tokens of a pass together, whoever they belong to.
    Which operators are attention is asked of the model: those whose time changes with the context. Times are of one
    attention data-parallel rank that runs beside equal ones.

    Raises:
        Unsupported: NoLegalShape, MissingOperatorData, UnsupportedDtype, or what the identity lacks.
    """

    def __init__(self, performance: "PerformanceModel", shape: Shape) -> None:
        self._performance, self._shape = performance, shape
        self._model, spec = performance.built(shape)
        self._engine = engine.EngineHandle(bytes(aiconfigurator_core.engine_spec_bincode_from_json(spec)))

    def other_ms(self, tokens: Sequence[int]) -> list[float]:
        """All but attention, by the new tokens of a pass, shape [tokens]."""
        with self._asking("passes without attention"):
            return self._checked(self._prompt_part_ms(self._others, 1, count) for count in tokens)

    def prompt_ms(self, prompts: int, new: Sequence[int], cached: Sequence[int]) -> list[list[float]]:
        """Attention of so many equal prompts, by the new tokens of each and those before them, shape [new, cached]."""
        with self._asking("attention of prompts"):
            return [
                self._checked(self._prompt_part_ms(self._prompt, prompts, count, before) for before in cached)
                for count in new
            ]

    def decode_ms(self, batches: Sequence[int], context: Sequence[int]) -> tuple[list[list[float]], list[list[float]]]:
        """A step of decoding sequences, and the attention in it, by their number and length, shapes [batch, context].

        Lengths count the token that the step computes.
        """
        everything = range(len(self._model.generation_ops))
        steps, attention = [], []
        with self._asking("decode steps"):
            for batch in batches:
                steps.append(self._checked(self._step_ms(everything, batch, length) for length in context))
                attention.append(self._checked(self._step_ms(self._decode, batch, length) for length in context))
        return steps, attention

    @cached_property
    def _prompt(self) -> list[int]:
        """Operators of prompts that look at the context, asked one by one: those of one name answer together."""
        return [
            index
            for index in range(len(self._model.context_ops))
            if self._prompt_part_ms([index], 1, _PROBE_TOKENS) != self._prompt_part_ms([index], 1, _PROBE_TOKENS, _FAR)
        ]

    @cached_property
    def _others(self) -> list[int]:
        return [index for index in range(len(self._model.context_ops)) if index not in self._prompt]

    @cached_property
    def _decode(self) -> list[int]:
        return [
            index
            for index in range(len(self._model.generation_ops))
            if self._step_ms([index], 1, _NEAR) != self._step_ms([index], 1, _FAR)
        ]

    def _prompt_part_ms(self, operators: Sequence[int], prompts: int, new: int, cached: int = 0) -> float:
        found = self._engine.evaluate_context_ops(list(operators), batch_size=prompts, s=new, prefix=cached)
        return math.fsum(float(time[1]) for time in found)

    def _step_ms(self, operators: Sequence[int], batch: int, length: int) -> float:
        found = self._engine.evaluate_generation_ops(list(operators), batch_size=batch, s=length)
        return math.fsum(float(time[1]) for time in found)

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        with self._performance.guarded(f", shape {self._shape.label}, {what}"):
            yield

    def _checked(self, times: Iterable[float]) -> list[float]:
        made = list(times)
        for time in made:
            if not (math.isfinite(time) and time >= 0):
                what = f"{self._performance.identity.label}, shape {self._shape.label}"
                raise Unsupported(Reason.INVALID_DATA, f"{what}: {time} is no time of a part of a pass")
        return made
