"""Values are computed as far out as their indices are known: once, for a row, or an element."""

import re

import geon
from geon.op_graph.axes.affine import Quotient, Remainder, variable
from geon.op_graph.axes.index_map import InRange
from geon.op_graph.rows.elementwise import add, exp
from geon.op_graph.values.dtypes import FLOAT32, INT64
from geon.transformers.kernels.analysis.loop_depth import ELEMENT_DEPTH, ROW_DEPTH, Depths
from geon.transformers.kernels.ir.scalar_code import (
    Clamped,
    IndexNumber,
    Kept,
    Load,
    Number,
    Reduced,
    Running,
    ScalarBuilder,
    Select,
    Wrapped,
)
from tests.golden.emitting import Native

DEPTHS = Depths({"i": ROW_DEPTH, "j": ELEMENT_DEPTH}, reduced=ROW_DEPTH)
ROW_INDEX, WITHIN = variable("i"), variable("j")


def test_an_index_is_known_where_its_innermost_variable_is():
    code = ScalarBuilder()
    at = code(Load, 0, ROW_INDEX, INT64)
    cases = {
        (ROW_INDEX * 0 + 3): 0,
        (ROW_INDEX * 4 + 1): ROW_DEPTH,
        (ROW_INDEX * 4 + WITHIN): ELEMENT_DEPTH,
        variable(Quotient(ROW_INDEX, 3)): ROW_DEPTH,
        variable(Remainder(ROW_INDEX * 4 + WITHIN, 3)): ELEMENT_DEPTH,
        variable(Clamped(ROW_INDEX, (InRange(WITHIN, 0, 3),))): ELEMENT_DEPTH,
        variable(Clamped(ROW_INDEX, (InRange(ROW_INDEX, 0, 3),))): ROW_DEPTH,
        variable(code(Wrapped, at, 9)): ROW_DEPTH,
    }
    for index, depth in cases.items():
        assert DEPTHS.index(index) == depth, index


def test_a_value_is_known_where_all_that_it_computes_with_is():
    code = ScalarBuilder()
    number, row, element = (
        Number(1, FLOAT32),
        code(Load, 0, ROW_INDEX, FLOAT32),
        code(Load, 0, WITHIN, FLOAT32),
    )
    cases = {
        number: 0,
        code.apply(exp, number): 0,
        code.apply(exp, row): ROW_DEPTH,
        code.apply(add, row, number): ROW_DEPTH,
        code.apply(add, code.apply(exp, row), element): ELEMENT_DEPTH,
        code(Reduced, 0, 0, FLOAT32): ROW_DEPTH,
        code(Kept, 0, WITHIN, FLOAT32): ELEMENT_DEPTH,
        code(Running, 0, False, FLOAT32): ELEMENT_DEPTH,
        code(IndexNumber, ROW_INDEX, INT64): ROW_DEPTH,
        code(Select, (InRange(WITHIN, 0, 2),), row, number): ELEMENT_DEPTH,
        code(Select, (InRange(ROW_INDEX, 0, 2),), row, number): ROW_DEPTH,
    }
    for value, depth in cases.items():
        assert DEPTHS.value(value) == depth, value


def blocks(result, x):
    """The statements of the only kernel's task: before its rows, of each row, of each element."""
    f = Native().computation(result, *x)
    (kernel,) = f.plan.schedule.kernels
    assert kernel.kind == "nest"
    text = f.source
    task = text[text.index("static void kernel_0_rows(") :]
    task = task[: task.index("\n}\n")]
    depths = {"top": [], "row": [], "element": []}
    for line in task.splitlines()[1:]:
        indent = len(line) - len(line.lstrip())
        inside = "top" if indent <= 4 else "row" if indent == 8 else "element"
        depths[inside].append(line.strip())
    return {name: "\n".join(lines) for name, lines in depths.items()}


def test_what_a_row_divides_by_is_outside_the_loop_over_its_elements():
    """In the derivative of a softmax 1 / sum is a value of the row, read by two passes."""
    n, c = geon.Axis("N"), geon.Axis("C", 1024)
    x, weight = geon.placeholder([n, c]), geon.placeholder([n, c])
    slope = geon.deriv(geon.sum(geon.softmax(x, c) * weight), x)
    found = blocks(slope, [x, weight])
    inverses = re.findall(r"const float (\w+) = 1(?:\.0f)? / (\w+);", found["row"])
    ((inverse, total),) = inverses
    assert re.search(rf"const float {total} = \(float\)b\d+;", found["row"])
    assert not re.search(r"= 1(\.0f)? /", found["element"])
    held = re.findall(rf"float (b\d+) = {inverse};", found["row"])
    assert len(held) == 2 and all(f"* {name};" in found["element"] for name in held)


def test_elementary_functions_of_what_a_row_has_are_computed_once_for_it():
    n, c = geon.Axis("N"), geon.Axis("C", 1024)
    x, scale, shift = geon.placeholder([n, c]), geon.placeholder([n]), geon.placeholder([])
    found = blocks(geon.max(geon.exp(scale) * x + geon.sin(shift), c), [x, scale, shift])
    assert "geon_sin_f32(" in found["top"]
    assert "geon_exp_f32(" in found["row"]
    assert "geon_" not in found["element"]
