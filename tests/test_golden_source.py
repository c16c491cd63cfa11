"""Kernels, plans and source of the golden programs: a change to them is seen in review.

``python -m tests.golden --update`` writes ``tests/golden/`` anew; see ``tests/golden/__init__.py``.
"""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import geon
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.products.product_text import product_units
from geon.transformers.sizes.product_blocks import shape
from tests.golden.__main__ import differences
from tests.golden.chunks import is_own, top_level
from tests.golden.emitting import (
    KERNEL,
    VECTOR_BYTES,
    golden_files,
    native,
    numpy_source,
    without_lines,
)
from tests.golden.programs import CLASS, HIDDEN, NUMPY_ONLY, PROGRAMS, perceptron

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_LINES = 60  # of a difference in a message; the whole one is printed by the command
SIZE = 265_000  # bytes of text that people may be asked to review


def emitted_elsewhere(folder=ROOT, **environment):
    """The golden texts from a process of its own.

    An op that another test made first would show that test's line.
    """
    run = [sys.executable, "-m", "tests.golden", "--json"]
    paths = os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    env = {**os.environ, "PYTHONPATH": paths, **environment}
    done = subprocess.run(run, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def emitted():
    return emitted_elsewhere(PYTHONHASHSEED="1")


def test_the_emitted_source_is_the_golden_one(emitted):
    difference = differences(emitted).splitlines()
    left = len(difference) - MOST_LINES
    shown = difference[:MOST_LINES] + ([f"... {left} lines more"] if left > 0 else [])
    assert not difference, "\n".join(
        [
            "what geon makes of the golden programs has changed: `python -m tests.golden` prints "
            "all of the difference, `python -m tests.golden --update` writes it into tests/golden/ "
            "to be read and committed with the change that made it",
            *shown,
        ]
    )


@pytest.mark.slow
def test_it_depends_on_no_seed_no_folder_and_no_compiler(emitted, tmp_path):
    changed = {"PYTHONHASHSEED": "2", "PATH": "", "CC": str(tmp_path / "none"), "GEON_THREADS": "3"}
    other = emitted_elsewhere(tmp_path, **changed)
    assert list(other) == list(emitted)
    assert [name for name in other if other[name] != emitted[name]] == []


def test_nothing_names_a_machine_or_a_line_of_the_programs(emitted):
    for name, text in emitted.items():
        assert ROOT not in text, name
        assert ".py:" not in text, name


def test_the_text_can_be_reviewed():
    files = list(golden_files())
    assert len(files) > 3 * len(PROGRAMS)
    assert sum(path.stat().st_size for path in files) <= SIZE
    assert all(path.read_bytes().endswith(b"\n") for path in files)


@pytest.mark.parametrize("name", ["block_gradient", "embedding_step", "adam"])
def test_the_parts_of_a_c_text_are_all_of_it(name):
    text = without_lines(native(name).source)
    chunks = list(top_level(text))
    parts = "".join(chunks).splitlines()
    assert [x for x in parts if x.strip()] == [x for x in text.splitlines() if x.strip()]
    for chunk in chunks:
        assert chunk.count("{") == chunk.count("}")
    own = "".join(chunk for chunk in chunks if is_own(chunk))
    assert "int64_t geon_run(" in own
    assert "GEON_INLINE" not in own


def test_a_changed_a_new_and_a_missing_file_are_shown(emitted):
    name = "softmax.kernels.txt"
    texts = {**emitted, name: "0: another kernel\n", "new.plan.txt": "peak bytes: 0\n"}
    del texts["adam.plan.txt"]
    shown = differences(texts)
    assert f"--- golden/{name}\n+++ emitted/{name}\n" in shown
    assert "\n+0: another kernel\n" in shown
    assert "\n+peak bytes: 0\n" in shown
    assert "\n-0: add() -> result 0\n" in shown


@pytest.mark.parametrize("name", [n for n in {**NUMPY_ONLY, **PROGRAMS} if "digits" not in n])
def test_the_emitted_source_is_python_and_deterministic(name):
    text = numpy_source(name)
    compile(text, name, "exec")
    assert numpy_source(name) == text


def test_the_examples_run():
    random = np.random.default_rng(0)
    xs, ts = random.normal(size=(20, 5)), random.integers(0, 3, size=20)
    results, placeholders = perceptron()
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(results, *placeholders, lengths={HIDDEN: 7, CLASS: 3})
        losses = [float(f(xs, ts)[0]) for _ in range(20)]
    assert losses[-1] < losses[0]


# What must stay so, or become better --------------------------------------------------------------

MOST_KERNELS = {
    "mlp_step": 13,
    "digits_step": 13,
    "digits_predict": 5,
    "adam": 2,
    "embedding_step": 10,
    "softmax": 1,
    "softmax_gradient": 1,
    "layer_norm": 1,
    "layer_norm_gradient": 2,
    "block": 9,
    "block_gradient": 28,
    "stencil_gradient": 2,
    "strided_slice_gradient": 1,
    "strided_convolution": 3,
}


def kernels(name):
    """The kernels of a program."""
    return native(name).plan.schedule.kernels


def loops_of(text):
    """The loops of kernels by their numbers."""
    return {number: loops for _, number, loops in KERNEL.findall(text)}


def written(kernel):
    """The names of the variables that a kernel writes."""
    return {leaf.name for leaf in kernel.writes.values()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_at_most_so_many_kernels(name, emitted):
    text = emitted[f"{name}.kernels.txt"]
    found = [line for line in text.splitlines() if line[0].isdigit()]
    assert len(found) == len(kernels(name)) <= MOST_KERNELS[name]
    repeated = re.findall(
        r"^(\d+): .*\n(?: +not .*\n)*    loops of (\w+) (\d+)$", text, re.MULTILINE
    )
    loops = loops_of(without_lines(native(name).explain("schedule"))) if repeated else {}
    for own, program, number in repeated:
        assert loops[own] == loops_of(emitted[f"{program}.kernels.txt"])[number]


@pytest.mark.parametrize("name", ["softmax", "softmax_gradient", "layer_norm"])
def test_rows_are_computed_in_one_kernel_without_memory_beside_the_result(name):
    f = native(name)
    (kernel,) = f.plan.schedule.kernels
    assert str(kernel.fused) == "nest by N"
    assert not f.plan.buffers


def test_a_strided_slices_derivative_is_one_kernel_without_an_array_of_zeros():
    f = native("strided_slice_gradient")
    (kernel,) = f.plan.schedule.kernels
    assert kernel.op.primitive.name == "update"
    assert not f.plan.buffers


def test_adam_updates_a_parameter_and_its_moments_in_one_kernel_in_place():
    f = native("adam")
    (kernel,) = [k for k in f.plan.schedule.kernels if "p" in written(k)]
    assert written(kernel) == {"p", "mean", "square"}
    assert not f.plan.buffers


def test_a_weights_update_is_computed_where_its_derivative_is_stored():
    found = {frozenset(written(k)): k for k in kernels("mlp_step") if k.writes}
    for number in range(3):
        product = found[frozenset({f"w{number}", f"w{number} speed"})]
        assert product.kind == "contraction"
        assert frozenset({f"b{number}", f"b{number} speed"}) in found


def test_bias_and_relu_and_their_derivatives_are_computed_in_the_products():
    products = [k for k in kernels("mlp_step") if k.kind == "contraction"]
    assert len(products) == 8  # three forward, two backward, three derivatives of weights
    made = [op.primitive.name for k in products for op in k.results]
    assert made.count("maximum") == made.count("where") == 2


def test_the_width_of_vectors_is_that_of_the_golden_machine(emitted):
    f = native("mlp_step")
    module = make_module(f.plan, f.linking, annotate=False)
    assert module.shared == product_units(shape("float", VECTOR_BYTES))
    assert f"#define VECTOR {VECTOR_BYTES // 4}\n" in module.shared[0]
