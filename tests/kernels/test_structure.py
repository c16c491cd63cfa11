"""Equal structure is equal text: what differs in operands and names alone is one function."""

import dataclasses
import re
from functools import partial

import pytest

import geon
from geon.transformers.kernels.ir.nest import Call, Region
from geon.transformers.kernels.structural_key import structure
from geon.transformers.lowering.planning.buffer_slots import place_of
from geon.transformers.native.emit.form_table import form_table
from geon.transformers.native.emit.module_text import function_of, memory_of, printed_work
from geon.transformers.native.names.naming import KernelNames
from tests.golden.emitting import VECTOR_BYTES, Native, native
from tests.golden.programs import PROGRAMS


def computation(*results_and_inputs):
    """The native computation of results and their placeholders, without a compiler."""
    results, inputs = zip(*results_and_inputs, strict=True)
    return Native().computation(list(results), *(x for xs in inputs for x in xs))


def softmax(rows="N", columns=6, dtype="float32", name=None):
    """A softmax, which is one nest, and its placeholder."""
    n, c = geon.Axis(rows), geon.Axis("C", columns)
    x = geon.placeholder([n, c], dtype, name=name)
    return geon.softmax(x, c, name=name and f"softmax of {name}"), [x]


def layer(x, w, b, columns):
    """A contraction with what is fused into its stores."""
    n, i, o = geon.Axis("N"), geon.Axis(x, 5), geon.Axis(columns, 7)
    x, w, b = geon.placeholder([n, i]), geon.placeholder([i, o]), geon.placeholder([o])
    return geon.tanh(geon.dot(x, w) + b), [x, w, b]


def found(f):
    """The structure of each kernel's work."""
    return [structure(kernel.work) for kernel in f.plan.schedule.kernels]


def functions(f):
    """The names of the functions that the program's own function calls, in order."""
    text = f.source
    return re.findall(
        r"^    (kernel_\d+)\(", text[text.rindex("int64_t geon_run(") :], re.MULTILINE
    )


def test_nests_that_differ_in_operands_and_names_are_one_function():
    f = computation(softmax(name="left"), softmax(name="right"))
    first, second = found(f)
    assert first == second and hash(first) == hash(second)
    assert functions(f) == ["kernel_0", "kernel_0"]


def test_contractions_that_differ_in_operands_and_names_are_one_function():
    f = computation(layer("I", "w", "b", "O"), layer("J", "v", "c", "P"))
    assert [kernel.kind for kernel in f.plan.schedule.kernels] == ["contraction"] * 2
    first, second = found(f)
    assert first == second
    assert functions(f) == ["kernel_0", "kernel_0"]


def of(make):
    """A row-wise result of one placeholder and that placeholder."""
    n, c = geon.Axis("N"), geon.Axis("C", 6)
    x = geon.placeholder([n, c])
    return make(x, n, c), [x]


def part(where):
    """One more than a part of each row."""
    return of(lambda x, n, c: x[{c: where}] + 1)


DIFFERENT = {
    "extents": (softmax(columns=6), softmax(columns=7)),
    "dtypes": (softmax(), softmax(dtype="float64")),
    "strides": (part(slice(0, 3)), part(slice(0, 6, 2))),
    "offsets": (part(slice(0, 3)), part(slice(1, 4))),
    "rows of scalars": (of(lambda x, n, c: geon.sin(x)), of(lambda x, n, c: geon.cos(x))),
    "numbers": (of(lambda x, n, c: x + 0.0), of(lambda x, n, c: x * 2 + 1)),
    "zeros": (of(lambda x, n, c: geon.maximum(x, 0.0)), of(lambda x, n, c: geon.maximum(x, -0.0))),
    "reducers": (of(lambda x, n, c: geon.max(x, c)), of(lambda x, n, c: geon.min(x, c))),
    "reduced axes": (of(lambda x, n, c: geon.sum(x, c)), of(lambda x, n, c: geon.sum(x, n))),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_in_anything_else_is_another_function(what):
    f = computation(*DIFFERENT[what])
    first, second = found(f)
    assert first != second
    assert functions(f) == ["kernel_0", "kernel_1"]


def test_open_lengths_of_other_names_are_arguments_of_one_function():
    """Their structure differs, their text does not: such kernels are found equal a second time."""
    f = computation(softmax("N"), softmax("M"))
    first, second = found(f)
    assert first != second
    assert functions(f) == ["kernel_0", "kernel_0"]


def test_operands_in_one_place_are_another_function():
    """A value added to itself has one pointer; structure does not tell, so the key has both."""
    n = geon.Axis("N")
    x, y, z = (geon.placeholder([n]) for _ in "xyz")
    same, other = geon.Variable([geon.Axis("C", 4)]), geon.Variable([geon.Axis("C", 4)])
    f = Native().computation([x + y, z + z, geon.assign(same, same + 1), other + 1], x, y, z)
    names = functions(f)
    assert len(set(names)) == len(names) == 4


def texts_of(f):
    """The texts of kernels that are printed each by itself, by what makes them one function."""
    texts = {}
    for kernel in f.plan.schedule.kernels:
        if isinstance(kernel.work, (Call, Region)):
            continue
        places = memory_of(f.plan, kernel)
        key = (
            structure(printed_work(f.plan, kernel)[0]),
            tuple([p and places.index(p) for p in places]),
        )
        form = form_table(VECTOR_BYTES).form(kernel, partial(place_of, f.plan), set())
        alone = dataclasses.replace(f.plan, forms={kernel.op: form}, vector_bytes=VECTOR_BYTES)
        texts.setdefault(key, set()).add(function_of(alone, kernel).text)
    return texts


@pytest.mark.parametrize("program", [name for name in PROGRAMS if "digits" not in name])
def test_equal_structure_is_equal_text(program):
    """Printed each by itself, kernels of one structure have one text."""
    texts = texts_of(native(program))
    assert texts and all(len(made) == 1 for made in texts.values())


TWO = geon.Axis("two", 2)
OF_ANY_LENGTH = {
    "an element": lambda x, a: geon.update(x, geon.mean(x), {a: 0}),
    "a part": lambda x, a: geon.update(x, geon.mean(x), {a: slice(1, 3)}),
    "steps": lambda x, a: geon.update(x, geon.mean(x), {a: slice(0, 4, 2)}),
    "a pad": lambda x, a: geon.pad(x, {a: (1, 2)}),
    "one behind the other": lambda x, a: geon.concat([x, x + 1], a),
    "a roll": lambda x, a: geon.roll(x, {a: 1}),
    "a part that is moved": lambda x, a: geon.pad(x[{a: slice(0, 2)}] * 2, {a: (1, 0)}),
    "sorted": lambda x, a: geon.sort(x, a),
    "sums so far": lambda x, a: geon.cumsum(x, a),
    "shares": lambda x, a: geon.softmax(x, a),
    "looked up": lambda x, a: geon.gather(x, geon.constant([0, 2], [TWO]), a),
    "put": lambda x, a: geon.scatter(x, geon.constant([0, 2], [TWO]), 1.0, a),
    "windows": lambda x, a: geon.max_pool(x, {a: 2}),
    "draws": lambda x, a: geon.pad(x * geon.Random(1).uniform([a]), {a: 1}),
    "turned": lambda x, a: geon.flip(x, a) - geon.mean(x),
}


@pytest.mark.parametrize("what", OF_ANY_LENGTH)
@pytest.mark.parametrize("lengths", [(5, 7), (64, 65), (300, 4000), (None, 6), (None, None)])
def test_one_op_over_two_lengths(what, lengths):
    """What a text says of a length is part of its structure, and of nothing else."""
    made, inputs = [], []
    for name, length in zip("AB", lengths, strict=True):
        a = geon.Axis(name, length)
        x = geon.placeholder([a])
        made.append(OF_ANY_LENGTH[what](x, a))
        inputs.append(x)
    texts = texts_of(Native().computation(made, *inputs))
    assert all(len(each) == 1 for each in texts.values())


def test_an_equal_kernel_is_not_printed_again(monkeypatch):
    """200 layers of one form: as many kernels' names are made as there are structures."""
    c, d = geon.Axis("C", 8), geon.Axis("D", 8)
    h = x = geon.placeholder([geon.Axis("N"), c])
    for k in range(200):
        w = geon.Variable([c, d], name=f"w{k}")
        h = geon.rename(geon.tanh(geon.dot(h, w)), {d: c})
    f = Native().computation(h, x)
    made = []
    whole = KernelNames.__init__

    def counted(self, plan, kernel, starts):
        made.append(kernel)
        whole(self, plan, kernel, starts)

    f.plan  # noqa: B018  # stages 3 to 5 first
    monkeypatch.setattr(KernelNames, "__init__", counted)
    text = f.source
    assert len(f.plan.schedule.kernels) >= 200
    assert len(made) == len(set(found(f))) <= 4
    assert text.count("static void kernel_") < 20
