"""Arguments are checked against annotations, and errors say which call of the user failed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import geon
from geon.frontends.base.arguments import ArgumentChecks, NamedErrors
from geon.op_graph.core.source_info import ROOT

HERE = os.path.relpath(__file__)
checked = ArgumentChecks({"Pipe": "a pipe, such as Pipe(3)"})


@checked
class Pipe:
    def __init__(self, length: int) -> None:
        self.length = length

    def join(self, *others: Pipe, scale: float = 1.0, name: str | None = None) -> float:
        return scale * sum(pipe.length for pipe in (self, *others))

    @classmethod
    def of(cls, lengths: Sequence[int | None], cut: Callable[..., Any] | None = None) -> list[Any]:
        return [cls(n) for n in lengths if n is not None]

    def fail(self) -> None:
        raise geon.ArgumentError("it leaks")


@checked
def count(pipes: Sequence[Pipe | None], by: Mapping[str, int] | None = None, more: Any = 3) -> int:
    return sum(pipe is not None for pipe in pipes)


class Tube(Pipe):
    """Another class of pipes."""


def test_what_fits_is_passed_on():
    assert Pipe(np.int64(3)).join(Pipe(4), Tube(2), scale=np.float32(2), name=None) == 18
    assert [pipe.length for pipe in Pipe.of((1, None, 2), cut=len)] == [1, 2]
    assert count([Pipe(1), None], by={"a": 1}, more="anything") == 1 == count((Tube(1),))
    assert list(inspect.signature(Pipe.join).parameters) == ["self", "others", "scale", "name"]


@pytest.mark.parametrize("call, message", [
    (lambda: Pipe(2.5), "Pipe at .*: length=2.5; give an integer"),
    (lambda: Pipe(True), "length=True; give an integer"),
    (lambda: Tube(1).join(3), "Tube.join at .*: others=3; give a pipe, such as Pipe"),
    (lambda: Pipe(1).join(scale="2"), "Pipe.join at .*: scale='2'; give a number"),
    (lambda: Pipe(1).join(name=5), "name=5; give a text, or None"),
    (lambda: Pipe.of("12"), "Pipe.of at .*: lengths='12'; give a list, each an integer, or None"),
    (lambda: Pipe.of([1], cut=5), "cut=5; give a function, or None"),
    (lambda: count([4]), r"count at .*: pipes=\[4\]; give a list, each a pipe.*, or None"),
    (lambda: count(np.array([1])), "give a list"),
    (lambda: count([], [1]), "by=.*; give a dictionary, or None"),
    (lambda: Tube(1).fail(), "Tube.fail at .*: it leaks"),
])  # fmt: skip
def test_what_does_not_fit_is_named_with_the_call(call, message):
    with pytest.raises(geon.ArgumentError, match=message) as raised:
        call()
    assert str(raised.value).count(f"{HERE}:") == 1


def test_calls_of_geons_own_are_not_checked():
    names = {"Pipe": Pipe}
    exec(compile("made = Pipe('long')", f"{ROOT}inside.py", "exec"), names)
    assert names["made"].length == "long"


def test_parts_of_a_program_name_an_error_once_for_each_kind():
    with (
        pytest.raises(geon.ArgumentError, match="^node a: command x: wrong$"),
        NamedErrors("node", lambda: "node b"),
        NamedErrors("node", lambda: "node a"),
        NamedErrors("command", lambda: "command x"),
    ):
        raise geon.ArgumentError("wrong")
    with pytest.raises(ValueError, match="^mine$"), NamedErrors("node", lambda: "node a"):
        raise ValueError("mine")
