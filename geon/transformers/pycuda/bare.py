"""The steps of a program under given lengths: launches with numbers of blocks, and words.

What has nothing to do is left out; pointers are put in when a call begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...op_graph.affine import Size
from ...op_graph.lengths import evaluate
from .device import Multiplication
from .launches import (
    Argument,
    Choice,
    Copy,
    Fixed,
    Launch,
    Multiply,
    Parts,
    Show,
    Step,
    Turns,
)
from .products import WORKSPACE


class Begun(NamedTuple):
    """A launch for given lengths: arguments that are known, and the numbers of those that are not.

    ``pointers`` has for some of the ``words`` the number of the pointer that is added to them;
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
    """What is left of steps; in turns, ``inside`` says which pointer a number is, and how many
    bytes behind it."""

    def __init__(self, loaded: Mapping[str, Any], lengths: Mapping[str, int]) -> None:
        self.loaded, self.lengths = loaded, lengths
        self.inside: dict[int, tuple[int, int]] = {}

    def at(self, pointer: int) -> tuple[int, int]:
        """The number of a pointer in the program's table, and how many bytes behind it."""
        return self.inside.get(pointer, (pointer, 0))

    def bare(self, steps: Iterable[Step], origin: int) -> Iterator[Bare]:
        """Steps under the lengths; what has nothing to do is left out."""
        for step in steps:
            if isinstance(step, Launch):
                if step.grid.blocks(self.lengths):
                    yield self.begun(step, origin)
            elif isinstance(step, Choice):
                holds = all(evaluate(size, self.lengths) >= 0 for size in step.holds)
                yield from self.bare(step.steps if holds else step.others, origin)
            elif isinstance(step, Turns):
                yield from self.turns(step)
            elif isinstance(step, Multiply):
                yield Multiplying(self.multiplication(step), step, origin)
            elif isinstance(step, Show):
                yield step
            elif evaluate(step.size, self.lengths):
                yield self.copy(step.target, step.source, step.size)

    def copy(self, target: int, source: int, size: Size) -> Copy:
        """A copy between two of the program's pointers."""
        (to, to_at), (of, of_at) = self.at(target), self.at(source)
        return Copy(to, of, size, to_at, of_at)

    def turns(self, loop: Turns) -> Iterator[Bare]:
        """The steps of all turns, one turn after another."""
        count = evaluate(loop.count, self.lengths)
        for carry in loop.carries:
            self.inside[carry.reads] = self.at(carry.first)
        for turn in range(count):
            part = count - 1 - turn if loop.reverse else turn
            for stack in loop.stacks:
                number, start = self.at(stack.pointer)
                behind = start + part * evaluate(stack.stride, self.lengths)
                self.inside[stack.inside] = number, behind
            for carry in loop.carries:
                there = carry.last if (count - turn) % 2 else carry.other
                self.inside[carry.writes] = self.at(there)
            for step, origin in zip(loop.steps, loop.origins, strict=True):
                yield from self.bare([step], origin)
            for carry in loop.carries:
                self.inside[carry.reads] = self.inside[carry.writes]
        for carry in loop.carries:
            if carry.stays and not count and evaluate(carry.size, self.lengths):
                yield self.copy(carry.last, carry.first, carry.size)

    def begun(self, launch: Launch, origin: int) -> Begun:
        """A launch with the words that are known."""
        words = [self.word(a) for a in launch.arguments]
        at = [(k, self.at(a)[0]) for k, a in enumerate(launch.arguments) if isinstance(a, int)]
        kernel = self.loaded[launch.kernel]
        blocks = launch.grid.blocks(self.lengths)
        return Begun(kernel, blocks, launch.threads, words, tuple(at), origin)

    def word(self, argument: Argument) -> int:
        """The word of an argument that is known, else 0."""
        if isinstance(argument, Parts):
            return argument.number(self.lengths)
        if isinstance(argument, Fixed):
            return argument.value
        return self.lengths[argument] if isinstance(argument, str) else self.at(argument)[1]

    def multiplication(self, step: Multiply) -> Multiplication:
        """A product under the lengths, without addresses."""
        product, lengths = step.product, self.lengths
        return Multiplication(
            left=0,
            right=0,
            out=0,
            bias=0 if product.bias is None else 1,  # there is one, whose address comes later
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
