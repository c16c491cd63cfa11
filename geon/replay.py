"""``python -m geon replay FILE``: run a dump and compare it with the naive interpreter."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ArgumentError, DumpError, GeonError
from .op_graph.op_graph import Op, Tensor, storage_leaves
from .op_graph.text.dumps import Case, loads_case
from .testing.difference import first_difference
from .testing.rounding import Expected
from .transformers.base import Transformer, make_transformer
from .transformers.binding.entry_values import at_entry
from .transformers.computation import Computation
from .transformers.reports.trace import op_title

Array = np.ndarray[Any, Any]
SAME, DIFFERENT, UNUSABLE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Replay:
    """A case that is ready to run: its computation, by ``transformer``, and its inputs."""

    transformer: Transformer
    f: Computation
    inputs: list[Array]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of running a case: a value for each computed tensor, or the error raised.

    ``expected`` has the interpreter's values with their tolerances for rounding.
    """

    values: dict[Op, Array]
    error: GeonError | None = None
    expected: Expected | None = None


def main(path: str, transformer: str | None = "numpy") -> int:
    """Run a dump by the naive interpreter and by a transformer, and print both outcomes.

    The first op at which they differ is printed too. Returns 0 if both agree (also if both raise
    the same error), and 1 if they do not. For a file that is no dump, or a case that cannot run, it
    prints one line with the reason and returns 2.
    """
    try:
        replay = prepare_replay(loads_case(read_text(path)), transformer)
    except GeonError as error:
        print(f"{path}: {' '.join(str(error).split())}", file=sys.stderr)
        return UNUSABLE
    with replay.transformer:
        return run(replay)


def read_text(path: str) -> str:
    """Return the text of a file; raise ``DumpError`` if it cannot be read as text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DumpError(f"cannot be read: {error}") from None


def prepare_replay(case: Case, name: str | None) -> Replay:
    """Return the computation of a case, with the variables set to their values in the dump."""
    placeholders = [leaf for leaf in storage_leaves(*case.results) if not leaf.info.stored]
    missing = [leaf for leaf in placeholders if leaf not in case.feeds]
    if missing:
        raise ArgumentError(
            f"the dump has no value of {missing[0]} (made at {missing[0].line_info}): write it "
            "with computation.dumps(*inputs), or geon.dumps(op, feeds={placeholder: array})"
        )
    transformer = make_transformer(name)
    try:
        f = transformer.computation(
            list(case.results),
            *placeholders,
            lengths=case.lengths,
        )
        for leaf, array in case.feeds.items():
            if leaf.info.stored:
                transformer.set(leaf, array)
    except GeonError:
        transformer.close()
        raise
    return Replay(transformer, f, [case.feeds[leaf] for leaf in placeholders])


def run(replay: Replay) -> int:
    """Print both outcomes and their first difference; return the exit status."""
    name = replay.transformer.target.name
    naive = run_interpreter(replay)
    difference = None
    if naive.error is None:
        try:
            difference = first_difference(replay.f, *replay.inputs)
        except GeonError as error:
            print(f"the search for a difference raised {_raised(error)}")
    compiled = run_call(replay)
    for number, (shown, pure) in enumerate(_computed(replay.f), 1):
        print(f"{number}. {op_title(shown)}")
        for who, outcome in (("interpreter", naive), (name, compiled)):
            if pure in outcome.values:
                print(f"{who}:\n{np.array2string(outcome.values[pure], threshold=60)}")
    for who, outcome in (("the interpreter", naive), (name, compiled)):
        if outcome.error is not None:
            print(f"{who} raised {_raised(outcome.error)}")
    if difference is not None:
        print(difference)
    elif agree(naive, compiled):
        print("no difference" if naive.error is None else "both raise the same error")
        return SAME
    else:
        print("the results differ, though no op does where it is a result of its own")
    return DIFFERENT


def _raised(error: GeonError) -> str:
    return f"{type(error).__name__}: {error}"


def _computed(f: Computation) -> list[tuple[Op, Tensor]]:
    """Return the ops to compare: each result with a value, and each variable that changes."""
    shown = zip(f.results, f.pure.outputs, strict=True)
    found: list[tuple[Op, Tensor]] = [(op, pure) for op, pure in shown if pure is not None]
    return [*found, *f.pure.updates.items()]


def run_interpreter(replay: Replay) -> Outcome:
    """Return the outcome by the naive interpreter."""
    f = replay.f
    try:
        known, lengths = at_entry(f.transformer, f.stages(), f.arranged(replay.inputs, {}))
        expected = Expected(f.pure.roots, known, lengths)
        return Outcome(expected.values, None, expected)
    except GeonError as error:
        return Outcome({}, error)


def run_call(replay: Replay) -> Outcome:
    """Return the outcome of a call, which also updates the variables."""
    f = replay.f
    try:
        found = f(*replay.inputs)
    except GeonError as error:
        return Outcome({}, error)
    values: dict[Op, Array] = {
        pure: value for pure, value in zip(f.pure.outputs, found, strict=True) if pure is not None
    }
    # Variables override results: the same op may be both, and the variable's value must be right.
    values |= {pure: replay.transformer.get(leaf) for leaf, pure in f.pure.updates.items()}
    return Outcome(values)


def agree(naive: Outcome, other: Outcome) -> bool:
    """Return True if both raise an error of one type, or all values differ only by rounding."""
    if naive.expected is None or other.error is not None:
        return type(naive.error) is type(other.error)
    return all(bool(naive.expected.same(op, value).all()) for op, value in other.values.items())
