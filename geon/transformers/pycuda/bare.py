"""The steps of a program under given lengths: launches with numbers of blocks, and words.

What has nothing to do is left out; pointers are put in when a call begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...op_graph.lengths import evaluate
from .device import Multiplication
from .launches import Argument, Choice, Copy, Fixed, Launch, Multiply, Parts, Show, Step
from .products import WORKSPACE


class Begun(NamedTuple):
    """A launch for given lengths: arguments that are known, and the numbers of those that are not.

    ``pointers`` has for some of the ``words`` the number of the pointer that is put there;
    ``origin`` is the number of the kernel in the plan.
    """

    kernel: Any
    blocks: int
    threads: int
    words: list[int]
    pointers: tuple[tuple[int, int], ...]
    origin: int


class Multiplying(NamedTuple):
    """A product for given lengths, whose addresses ``step`` says; ``origin`` is its kernel."""

    made: Multiplication
    step: Multiply
    origin: int


Bare = Begun | Multiplying | Copy | Show  # what is left of a step under given lengths


def bare_steps(
    steps: Sequence[Step],
    origins: Sequence[int],
    loaded: Mapping[str, Any],
    lengths: Mapping[str, int],
) -> list[Bare]:
    """What is left of the steps of a module, whose kernels are ``loaded``, in order."""
    made = _Bare(loaded, lengths)
    both = zip(steps, origins, strict=True)
    return [bare for step, origin in both for bare in made.bare([step], origin)]


class _Bare:
    def __init__(self, loaded: Mapping[str, Any], lengths: Mapping[str, int]) -> None:
        self.loaded, self.lengths = loaded, lengths

    def bare(self, steps: Iterable[Step], origin: int) -> Iterator[Bare]:
        """Steps under the lengths; what has nothing to do is left out."""
        for step in steps:
            if isinstance(step, Launch):
                if step.grid.blocks(self.lengths):
                    yield self.begun(step, origin)
            elif isinstance(step, Choice):
                holds = all(evaluate(size, self.lengths) >= 0 for size in step.holds)
                yield from self.bare(step.steps if holds else step.others, origin)
            elif isinstance(step, Multiply):
                yield Multiplying(self.multiplication(step), step, origin)
            elif isinstance(step, Show) or evaluate(step.size, self.lengths):
                yield step

    def begun(self, launch: Launch, origin: int) -> Begun:
        """A launch with the words that are known."""
        words = [self.word(a) for a in launch.arguments]
        at = [(k, a) for k, a in enumerate(launch.arguments) if isinstance(a, int)]
        kernel = self.loaded[launch.kernel]
        blocks = launch.grid.blocks(self.lengths)
        return Begun(kernel, blocks, launch.threads, words, tuple(at), origin)

    def word(self, argument: Argument) -> int:
        """The word of an argument that is known, else 0."""
        if isinstance(argument, Parts):
            return argument.number(self.lengths)
        if isinstance(argument, Fixed):
            return argument.value
        return self.lengths[argument] if isinstance(argument, str) else 0

    def multiplication(self, step: Multiply) -> Multiplication:
        """A product under the lengths, without addresses."""
        product, lengths = step.product, self.lengths
        return Multiplication(
            left=0,
            right=0,
            out=0,
            bias=0,
            works=evaluate(step.after, lengths),
            size=WORKSPACE,
            batch=evaluate(product.batch, lengths),
            rows=evaluate(product.rows, lengths),
            columns=evaluate(product.columns, lengths),
            deep=evaluate(product.deep, lengths),
            left_strides=product.left_strides.under(lengths),
            right_strides=product.right_strides.under(lengths),
            out_strides=product.out_strides.under(lengths),
            dtype=product.dtype,
            result=product.result,
        )
