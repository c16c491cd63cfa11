"""Random graphs mean the same to the naive interpreter, a planned program and one without a plan.

``make fuzz`` runs many more of them. A failure is shrunk, and the graph with its inputs is written
to a file that ``python -m geon replay FILE`` runs again.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, seed, settings

import geon
from geon.__main__ import main
from geon.op_graph.op_graph import post_order, storage_leaves
from geon.op_graph.values.dtypes import kind
from geon.transformers.binding.open_lengths import open_names

from . import random_identities as identities
from . import random_moves as moves
from . import random_nests as nests
from . import random_regions as regions
from . import random_steps as steps
from .naive_run import naive_run
from .random_graphs import Case, graphs

FAILURES = Path(__file__).parents[1] / ".hypothesis" / "failed-graphs"

MOVEMENT = [moves.reorder, moves.broadcast, moves.rename, moves.flip, moves.flatten, moves.take,
            moves.update, moves.concat, moves.stack, moves.pad, moves.window, moves.window,
            moves.diagonal, moves.roll]  # fmt: skip
ARITHMETIC = [*[steps.elementwise] * 6, steps.with_number, steps.cast, steps.polygamma]
SUMS = [steps.reduction, steps.contraction, moves.running, moves.parts]
POSITIONS = [moves.gather, moves.scatter, moves.order, moves.take, moves.update]
IDENTITIES = [identities.identity, identities.identity, identities.size_of_sum]
LEAVES = [moves.constant, moves.draw]
EVERYTHING = [*MOVEMENT, *ARITHMETIC, *SUMS * 2, *POSITIONS, *LEAVES,
              steps.matrices, steps.composite, steps.marked, steps.derivative]  # fmt: skip
THEMES = {
    "everything": EVERYTHING,
    "arithmetic": [*ARITHMETIC, *IDENTITIES * 2, moves.constant, moves.reorder, moves.broadcast],
    "movement": [*MOVEMENT, steps.with_number],
    "sums": [*SUMS * 3, steps.matrices, steps.with_number, *MOVEMENT],
    "contractions": [
        steps.matrices,
        steps.contraction,
        moves.reorder,
        moves.take,
        moves.flip,
        moves.flatten,
        moves.rename,
        steps.with_number,
    ],  # fmt: skip
    "positions": [*POSITIONS * 2, moves.reorder, moves.flip, moves.constant, steps.with_number],
    "draws": [moves.draw, *ARITHMETIC, *SUMS, *MOVEMENT],
    "regions": [
        *[regions.delayed, regions.branch, regions.turned] * 3,
        *ARITHMETIC,
        *MOVEMENT,
        steps.reduction,
        steps.derivative,
    ],  # fmt: skip
    "nests": [*[nests.nest] * 3, moves.reorder, moves.flip, steps.with_number],
    "derivatives": [
        steps.derivative,
        steps.marked,
        *IDENTITIES,
        *ARITHMETIC,
        steps.composite,
        steps.matrices,
        *SUMS * 2,
        *MOVEMENT,
        *POSITIONS,
    ],  # fmt: skip
}
LONGER = 10  # so many times as long a nest of loops takes as other graphs do
PARTS = [
    *((theme, False, number) for theme in THEMES for number in range(1 if theme == "nests" else 2)),
    *(("everything", True, number) for number in range(4)),
    *(("movement", True, number) for number in range(2)),
    *(("positions", True, number) for number in range(2)),
]


@pytest.mark.parametrize(("theme", "effects", "number"), PARTS)
def test_random_graphs(theme, effects, number):
    name = f"{theme}{'-effects' if effects else ''}-{number}"

    count = max(1, settings.default.max_examples // (LONGER if theme == "nests" else 1))

    @seed(number)
    @settings(settings.default, max_examples=count)
    @given(graphs(THEMES[theme], effects))
    def run(case):
        check(case, FAILURES / f"{name}.geon")

    run()


def programs(case, make):
    """Computations of a case: planned, without a plan, and refusing what is not finite.

    ``make`` makes a transformer that may use this many threads.
    """
    planned, plain, checked = make(1), make(3), make(2)
    return (
        planned.computation(case.results, *case.placeholders),
        plain.computation(case.results, *case.placeholders, plan=False),
        checked.computation(case.results, *case.placeholders, check="nan"),
    )


def check(case, path, made=None):
    """Compare them, and the interpreter, in two calls; a failure writes the graph and the inputs.

    ``made`` are the ``programs``, NumPy's where not given.
    """
    state = {}
    for feeds, lengths in zip(case.feeds, case.lengths, strict=True):
        inputs = dict(zip(case.placeholders, feeds, strict=True))
        try:
            if made is None:
                made = programs(case, lambda threads: geon.NumPyTransformer())
            f, g, h = made
            leaves = [v for v in storage_leaves(*case.results) if v.info.stored]
            state = {v: f.transformer.get(v) for v in leaves}
            compare_call(case, f, g, inputs, state, lengths)
            check_finite(f, h, inputs, state)
        except Exception as error:
            known = {**inputs, **state}
            written = write_failure(path, case, known, lengths, made and made[0])
            raise AssertionError(f"{error}\nrun it again: {written}") from error


def write_failure(path, case, feeds, lengths, f):
    """The command that runs a failed graph again, once it is written."""
    known = set(storage_leaves(*case.results))
    feeds = {leaf: array for leaf, array in feeds.items() if leaf in known}
    names = open_names(post_order(case.results))
    lengths = {name: length for name, length in lengths.items() if name in names}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(geon.dumps(case.results, feeds=feeds, lengths=lengths))
    numpy = f is None or isinstance(f.transformer, geon.NumPyTransformer)
    return f"python -m geon replay {path}{'' if numpy else ' --transformer native'}"


def compare_call(case, f, g, inputs, state, lengths):
    """One call of both programs from the same state, against the naive meaning."""
    given_arrays = [array.copy() for array in inputs.values()]
    expected, after = naive_run(case.results, {**inputs, **state}, lengths)
    got, plain = f(*given_arrays), g(*given_arrays)
    for op, error, a, b, c in zip(case.results, case.errors, expected, got, plain, strict=True):
        if a is None:
            assert b is None and c is None
            continue
        close(op, a, b, error)
        same_bits(op, b, c)
        assert b.flags.owndata and b.flags.writeable, f"{op!r}: the result is not the caller's own"
    for array, own in zip(inputs.values(), given_arrays, strict=True):
        assert array.tobytes() == own.tobytes(), "an input was written to"
    for leaf, before in state.items():
        now = f.transformer.get(leaf)
        same_bits(leaf, now, g.transformer.get(leaf))
        if leaf in after:
            close(leaf, after[leaf], now, case.variable_errors[leaf])
        elif leaf in case.variable_errors:
            same_bits(leaf, before, now)
    planned, plain = (h.peak_bytes(lengths) for h in (f, g))
    assert planned <= plain, f"the plan takes {planned} bytes, no plan {plain}"


def check_finite(f, h, inputs, state):
    """A call that refuses values that are not finite does as the other, or changes nothing."""
    for leaf, before in state.items():
        h.transformer.set(leaf, before)
    try:
        h(*inputs.values())
    except geon.NonFiniteError:
        expected = state
    else:
        expected = {leaf: f.transformer.get(leaf) for leaf in state}
    for leaf, value in expected.items():
        same_bits(leaf, value, h.transformer.get(leaf))


def same_bits(op, b, c):
    """Raise where two arrays differ in any bit."""
    assert b.dtype == c.dtype and b.shape == c.shape, (
        f"{op!r}: {b.dtype}{b.shape} {c.dtype}{c.shape}"
    )
    assert b.tobytes() == c.tobytes(), f"{op!r}: with the plan\n{b}\nwithout\n{c}"


def close(op, expected, got, error):
    """Raise where an array differs from the expected one by more than the error."""
    assert got.dtype == op.dtype, f"{op!r}: the result is {got.dtype}"
    assert got.shape == expected.shape, f"{op!r}: shape {got.shape}, expected {expected.shape}"
    if kind(op.dtype) != "f":
        assert np.array_equal(expected, got), f"{op!r}: expected\n{expected}\ngot\n{got}"
        return
    a, b = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(all="ignore"):
        agree = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 4 * error)
    assert agree.all(), f"{op!r}: expected (within {4 * error})\n{expected}\ngot\n{got}"


def test_a_failure_is_written_to_be_run_again(tmp_path, monkeypatch, capsys):
    x, v = geon.placeholder([geon.Axis("N")]), geon.Variable(initial_value=2)
    feeds = [[np.arange(n, dtype=np.float32)] for n in (3, 1)]
    results = [geon.sum(x) * v, geon.assign(v, v + 1)]
    case = Case(results, [0.0, None], [x], feeds, [{"N": 3}, {"N": 1}], {v: 0.0})
    path = tmp_path / "graph.geon"
    check(case, path)
    assert not path.exists()
    monkeypatch.setattr("tests.test_random_graphs.close", refuse)
    with pytest.raises(AssertionError, match=f"wrong\nrun it again: python -m geon replay {path}"):
        check(case, path)
    assert main(["replay", str(path)]) == 0
    assert "6." in capsys.readouterr().out


def refuse(*_):
    """What a comparison does that fails."""
    raise AssertionError("wrong")
