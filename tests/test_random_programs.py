"""Random large programs: they are what they were for a seed, ceilings are as counted by hand, and
the tools that measure them say what they found."""

import dataclasses
import importlib.util
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import geon
from benchmarks.random_programs import bench_random, ceiling, fuzz_speed, processes
from benchmarks.random_programs.programs import FEWEST, MOST, grown
from benchmarks.random_programs.structure_text import structure_text, trait
from geon.transformers.native.machine.measured_machine import machine
from geon.transformers.native.names.naming import place_of
from geon.transformers.sizes.ceilings import READ_WRITE_MIXES, Ceilings

ROOT = Path(__file__).parents[1]
missing = geon.NativeTransformer.unavailable()
needs_native = pytest.mark.skipif(missing is not None, reason=str(missing))
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is missing")
RATE, OPERATIONS = 1e9, 1e10  # bytes and operations a second of the machine counted with
N, M, K = geon.Axis("N", 1000), geon.Axis("M", 2000), geon.Axis("K", 500)


# Programs -----------------------------------------------------------------------------------------


def test_a_seed_gives_one_program():
    for number in range(8):
        first, again = grown("fixed", number, small=True), grown("fixed", number, small=True)
        assert str(first) == str(again)
        assert first.lengths == again.lengths
        for x, y in zip(first.feeds, again.feeds, strict=True):
            assert x.tobytes() == y.tobytes()
    assert str(grown("other", 0, small=True)) != str(grown("fixed", 0, small=True))


@pytest.mark.slow
def test_programs_are_as_large_as_they_say_and_of_all_kinds():
    found = set()
    for number in range(60):
        program = grown("kinds", number)
        largest = max(array.size for array in program.feeds)
        assert largest <= 1.3 * 10**MOST
        made = [op for result in program.results for op in below(result)]
        sizes = [ceiling.elements(op, program.lengths) for op in made]
        assert max(sizes) >= 0.1 * 10**FEWEST
        found |= {op.primitive.name for op in made}
    wanted = "add tanh sum max slice concat gather scatter cumsum sort dot flip where pad".split()
    assert not [name for name in wanted if name not in found]


def below(result):
    from geon.op_graph.op_graph import post_order

    return list(post_order([result]))


# Ceilings, counted by hand ------------------------------------------------------------------------


def counted():
    """A machine on which all bytes take the same time, and all operations."""
    rates = tuple([(RATE, RATE)] * len(READ_WRITE_MIXES))
    limits = Ceilings(1, (1 << 10, 1 << 30), rates, {4: OPERATIONS, 8: OPERATIONS})
    return dataclasses.replace(machine(1), ceilings={1: limits})


def least(results, *inputs):
    """The ceilings of the kernels of some results: bytes, lines, operations; passes of sorts."""
    results = results if isinstance(results, list) else [results]
    with geon.make_transformer("native", threads=1) as transformer:
        stages = transformer.computation(results, *inputs).stages()
        plan = stages.plan
        place = partial(place_of, plan)
        found = ceiling.kernel_ceilings(plan.schedule, {}, counted(), 1, place)
        works = [kernel.work for kernel in plan.schedule.kernels]
        for work in works:
            assert trait(work, {}) and structure_text(work, {})
    return [
        (round(each.traffic * RATE), round(each.lines * RATE), round(each.arithmetic * OPERATIONS))
        for each in found
    ]


def inputs(*axes, dtype="float32"):
    return [geon.placeholder(each, dtype) for each in axes]


@needs_native
def test_elementwise_reads_and_writes_each_element_once():
    x, y = inputs([N, M], [N, M])
    assert least(x * y + x, x, y) == [(3 * 4 * 2e6, 0, 2 * 2e6)]


@needs_native
def test_an_operand_that_is_repeated_counts_once():
    x, y = inputs([N, M], [M])
    assert least(x * y, x, y) == [(4 * (2e6 + 2000 + 2e6), 0, 2e6)]


@needs_native
def test_a_sum_and_a_sum_of_columns():
    (x,) = inputs([N, M])
    assert least(geon.sum(x), x) == [(4 * (2e6 + 1), 0, 2e6)]
    assert least(geon.sum(x, N), x) == [(4 * (2e6 + 2000), 0, 2e6)]


@needs_native
def test_a_transposed_copy_is_its_bytes():
    (x,) = inputs([N, M])
    assert least(geon.reorder(x, [M, N]), x) == [(2 * 4 * 2e6, 0, 0)]


@needs_native
def test_a_part_of_an_operand_is_all_that_is_read():
    (x,) = inputs([N, M])
    assert least(x[{N: slice(0, 100)}] * 2, x) == [(2 * 4 * 2e5, 0, 2e5)]


@needs_native
def test_a_product():
    x, y = inputs([N, K], [K, M])
    found = least(geon.dot(x, y), x, y)
    moved = 4 * (1000 * 500 + 500 * 2000 + 1000 * 2000)
    assert found == [(moved, 0, 2 * 1000 * 500 * 2000)]


@needs_native
def test_a_gather_takes_a_line_for_each_position():
    table, index = geon.placeholder([N]), geon.placeholder([M], "int64")
    moved, lines, _ = least(geon.gather(table, index, N), table, index)[-1]
    assert moved == 4 * 1000 + 8 * 2000 + 4 * 2000
    assert lines == 64 * 2000
    # Rows of 500 float32 are 32 lines each: 31.25 of them, rounded up.
    table = geon.placeholder([N, K])
    moved, lines, _ = least(geon.gather(table, index, N), table, index)[-1]
    assert lines == 2000 * 32 * 64
    assert moved == 4 * (1000 * 500 + 2000 * 500) + 8 * 2000


@needs_native
def test_running_sums_count_their_bytes():
    (x,) = inputs([N, M])
    moved, lines, operations = least(geon.cumsum(x, M), x)[-1]
    assert (moved, lines, operations) == (2 * 4 * 2e6, 0, 2e6)


@needs_native
def test_sorts_count_passes():
    x, few = inputs([N, M], [N, geon.Axis("F", 5)])
    made = [geon.sort(x, M), geon.argsort(x, M), geon.sort(few, few.axes[1])]
    passes = []
    for op in made:
        with geon.make_transformer("native", threads=1) as transformer:
            stages = transformer.computation(op, *op.placeholders()).stages()
            (kernel,) = stages.plan.schedule.kernels
        passes.append(ceiling.sort_seconds(kernel.work, {}, counted().on(1)) * RATE)
    # A pass for each of 4 bytes; with positions of 8 bytes; 2**3 is above 5.
    assert passes == pytest.approx([2 * 4 * 4 * 2e6, 2 * 4 * 12 * 2e6, 2 * 3 * 4 * 5000])


@needs_native
def test_what_was_just_written_comes_from_where_it_lies():
    """A second kernel's operand is as far away as the bytes that were touched since; a result's
    memory is a new one."""
    near, far = RATE * 100, RATE
    limits = Ceilings(
        1, (1 << 18, 1 << 19), tuple([(near, far)] * len(READ_WRITE_MIXES)), {4: 1e18, 8: 1e18}
    )
    on = dataclasses.replace(counted(), ceilings={1: limits})
    small = geon.Axis("S", 4096)
    x = geon.placeholder([small])
    with geon.make_transformer("native", threads=1) as transformer:
        plan = transformer.computation(geon.sort(geon.sort(x, small) * 2, small), x).stages().plan
        place = partial(place_of, plan)
        found = ceiling.kernel_ceilings(plan.schedule, {}, on, 1, place)
    one = (
        4 * 4096
    )  # bytes that a kernel reads, and that it writes; the result is touched once first
    expected = (2 * len(found) - 1) * one / near + one / far
    assert sum(each.traffic for each in found) == pytest.approx(expected)


@needs_native
def test_elementary_functions_take_the_time_of_their_instructions():
    """Of one that divides, and of one that does not, in full vectors; a product has none."""
    limits = Ceilings(2, (1 << 10, 1 << 30), tuple([(1e18, 1e18)] * 5), {4: 1e18, 8: 1e18})
    speeds = dataclasses.replace(machine(1).speeds, statement=2e-9, division={4: 1e-6, 8: 2e-6})
    on = dataclasses.replace(counted(), ceilings={1: limits, 2: limits}, speeds=speeds)
    vectors = 2e6 * 8 / on.vector_bytes
    x, y = inputs([N, M], [M, N], dtype="float64")
    for made, expected in (
        (geon.exp(x), vectors * 25 * 2e-9 / 2),
        (1 / x, vectors * 2e-6 / 2),
        (geon.dot(x, geon.rename(y, {N: "P"}), over=M), 0),
    ):
        with geon.make_transformer("native", threads=1) as transformer:
            plan = transformer.computation(made, *made.placeholders()).stages().plan
            (found,) = ceiling.kernel_ceilings(plan.schedule, {}, on, 2, partial(place_of, plan))
        assert found.arithmetic == pytest.approx(expected, abs=1e-8)


def test_a_program_needs_its_inputs_and_results():
    x, y = inputs([N, M], [N, M])
    made = geon.tanh(x * y + 1)
    needed = ceiling.program_ceiling([made], {}, counted(), 1)
    assert needed == pytest.approx(3 * 4 * 2e6 / RATE)
    a, b = inputs([N, K], [K, M])
    needed = ceiling.program_ceiling([geon.dot(a, b)], {}, counted(), 1)
    assert needed == pytest.approx(2 * 1e9 / OPERATIONS)


@needs_native
def test_a_chain_of_products_reads_its_operands_alone():
    narrow = geon.Axis("K", 50)
    x, y = inputs([N, narrow], [M, narrow])
    (found,) = least(geon.max(geon.dot(x, y), M), x, y)
    assert found == (4 * (1000 * 50 + 2000 * 50 + 1000), 0, (2 * 50 + 1) * 2e6)


@needs_native
def test_what_is_special_about_a_kernel():
    x, y, line = inputs([N, M], [M, N], [N])
    index = geon.placeholder([M], "int64")
    flat = geon.flatten(geon.reorder(x, [M, N]))
    thin = geon.placeholder([N, geon.Axis("thin", 9)])
    for op, expected in (
        (x * 2, "elementwise"),
        (x + geon.reorder(y, [N, M]), "across memory"),
        (flat, "across memory"),
        (geon.flip(flat, flat.axes), "divided indices"),
        (geon.concat([line * 2, line], N), "pieces"),
        (geon.sum(x), "reduction of all"),
        (geon.sum(x, M), "reduction of rows"),
        (geon.sum(x, N), "reduction of columns"),
        (geon.argmax(x, N), "reduction with a state"),
        (geon.gather(line, index, N), "positions"),
        (geon.sort(x, M), "sort"),
        (geon.dot(x, geon.rename(y, {N: "P"}), over=M), "product"),
        (geon.max(geon.dot(thin, geon.rename(thin, {N: "P"})), N), "chain by blocks"),
    ):
        with geon.make_transformer("native", threads=1) as transformer:
            stages = transformer.computation(op, *op.placeholders()).stages()
            found = [trait(kernel.work, {}) for kernel in stages.plan.schedule.kernels]
        assert expected in found, (op, found)


# The tools ----------------------------------------------------------------------------------------


def test_the_fastest_run_of_each_kernel_counts():
    def measured(number, call, *kernels):
        rows = [{"number": k, "seconds": seconds} for k, seconds in enumerate(kernels)]
        return {"number": number, "seconds": call, "kernel_seconds": sum(kernels), "kernels": rows}

    failed = {"number": 1, "failed": "took longer"}
    runs = [measured(0, 9.0, 4.0, 3.0), failed, measured(0, 8.0, 2.0, 5.0), measured(1, 1.0, 0.5)]
    assert fuzz_speed.fastest(runs) == [measured(0, 8.0, 2.0, 3.0), measured(1, 1.0, 0.5)]
    assert fuzz_speed.fastest(runs[1:2]) == [failed]
    assert fuzz_speed.fastest([*runs[3:], failed]) == runs[3:]


@pytest.mark.slow
@needs_native
def test_kernels_of_some_programs_are_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(fuzz_speed, "FILES", tmp_path)
    into = tmp_path / "found.jsonl"
    options = ["--programs", "3", "--seed", "fixed", "--small", "--threads", "1", "--into"]
    options += [str(into), "--files", "1", "--least", "0"]
    assert fuzz_speed.main(options) == 0
    shown = capsys.readouterr().out
    assert "seed fixed, 3 programs" in shown and "below 30% of their ceiling" in shown
    assert "each element of an operand" in shown  # what a ceiling is
    rows = [json.loads(line) for line in into.read_text().splitlines()]
    assert [row["number"] for row in rows] == [0, 1, 2]
    assert all(row["seconds"] > 0 and row["least"] > 0 and row["kernels"] for row in rows)
    (file,) = tmp_path.glob("*.geon")
    ran = subprocess.run(
        [sys.executable, "-m", "geon", "replay", str(file), "--transformer", "native"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # Another run with the file has nothing to measure, and its bound is asserted where asked.
    assert fuzz_speed.main([*options, "--assert"]) == 1
    assert "0: " not in capsys.readouterr().out.split("kernels took")[0]


@pytest.mark.slow
@needs_native
def test_a_program_that_takes_too_long_or_fails_is_said(tmp_path):
    found = []
    given = {"what": "measured", "seed": "fixed", "threads": 1, "small": True}
    processes.run(given, [0, 1], 0.01, found.append)
    assert [row["number"] for row in found] == [0, 1]
    assert all("took longer than" in row["failed"] for row in found)
    found = []
    processes.run({**given, "repeats": -1}, [0], 60.0, found.append)
    assert "ArgumentError" in found[0]["failed"]
    assert "failed" in fuzz_speed.report(found, "fixed", 5) or "---" in fuzz_speed.report(
        found, "fixed", 5
    )


def test_bounds():
    def program(*shares):
        kernels = [{"seconds": 1e-3, "least": 1e-3 * share} for share in shares]
        return {"number": 0, "kernels": kernels}

    assert not fuzz_speed.fails(fuzz_speed.counted([program(*[0.5] * 19, 0.2)]))
    assert fuzz_speed.fails(fuzz_speed.counted([program(*[0.5] * 18, 0.2)]))
    assert fuzz_speed.fails(fuzz_speed.counted([program(*[0.5] * 99, 0.09)]))

    def race(*ratios):
        return bench_random.ratios(
            [
                {
                    "number": k,
                    "shown": "",
                    "forward": {"geon": 1.0, "jax": ratio, "geon_best": 1.0, "jax_best": ratio},
                }
                for k, ratio in enumerate(ratios)
            ]  # fmt: skip
        )

    assert bench_random.geometric_mean(race(2.0, 8.0)) == pytest.approx(4.0)
    assert not bench_random.fails(race(2.0, 8.0))
    assert bench_random.fails(race(0.9, 80.0)) and bench_random.fails(race(2.0, 2.0))


@needs_native
@needs_jax
def test_programs_beside_jax(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench_random, "FILES", tmp_path)
    options = ["--programs", "3", "--seed", "fixed", "--small", "--threads", "1", "--files", "1"]
    assert bench_random.main(options) == 0
    shown = capsys.readouterr().out
    assert "geometric mean of 3 forward" in shown and "left out" not in shown
    assert len(list(tmp_path.glob("*.geon"))) == 1


@needs_jax
@pytest.mark.parametrize("number", range(10))
def test_jax_computes_the_same(number):
    import jax.numpy as jnp

    from benchmarks.random_programs.as_jax import as_jax
    from benchmarks.random_programs.raced import differs

    program = grown("same", number, derivatives=False, small=True)
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(program.results, *program.placeholders, lengths=program.unfed())
        ours = [np.asarray(value) for value in f(*program.feeds)]
    function = as_jax(program.results, program.placeholders, program.lengths)
    theirs = [np.asarray(value) for value in function(*map(jnp.asarray, program.feeds))]
    fault = differs(ours, theirs)
    assert fault is None or "not finite" in fault


@needs_jax
def test_what_differs():
    from benchmarks.random_programs.raced import differs

    x = np.linspace(-1, 1, 100, dtype=np.float32)
    top = np.where(x > 0.9, np.inf, x).astype(np.float32)
    assert differs([x], [x + 1e-5]) is None
    assert differs([top], [top]) is None and differs([top * np.nan], [top * np.nan]) is None
    told = "result 0 is -1.0 at (0,), JAX -0.75; 100 of 100 elements differ"
    assert differs([x], [x + 0.25]) == told
    assert "at (95,), JAX inf; 5 of 100" in differs([x], [top])
    assert "JAX nan" in differs([top], [top * np.nan])
    assert differs([-top], [top * 1]).endswith("100 of 100 elements differ")
    assert differs([x], [x[:5]]) == "result 0 has the shape (100,), JAX (5,)"
    assert "is 4 at (4,), JAX 5; 1 of 5" in differs([np.arange(5)], [np.array([0, 1, 2, 3, 5])])


@needs_native
@needs_jax
def test_other_values_than_those_of_jax_fail(tmp_path, capsys, monkeypatch):
    from benchmarks.random_programs import raced

    program = grown("fixed", 0, derivatives=False, small=True)
    made = raced.in_jax
    off_by_half = lambda *given: lambda *args: [x + 0.5 for x in made(*given)(*args)]  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr(raced, "in_jax", off_by_half)
        row = raced.raced(program, 1)
    assert "JAX" in row["forward"]["differs"] and "geon" not in row["forward"]

    # A run that has this outcome fails without being asked to assert, and says all there is.
    into = tmp_path / "found.jsonl"
    into.write_text(json.dumps({"number": 0, **row}) + "\n")
    monkeypatch.setattr(bench_random, "FILES", tmp_path)
    options = ["--programs", "1", "--seed", "fixed", "--small", "--into", str(into)]
    assert bench_random.main(options) == 1
    shown = capsys.readouterr().out
    file = tmp_path / "fixed-0-forward.geon"
    assert f"DIFFERS from JAX: fixed-0 forward: {row['forward']['differs']}" in shown
    assert f"python -m geon replay {file}" in shown and file.exists()


@needs_jax
def test_a_program_that_fails_fails_the_race(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_random, "FILES", tmp_path)
    into = tmp_path / "found.jsonl"
    into.write_text(json.dumps({"number": 0, "shown": "", "failed": "ended with -11"}) + "\n")
    options = ["--programs", "1", "--seed", "fixed", "--small", "--into", str(into)]
    assert bench_random.main(options) == 1
