"""Kernels that call functions of the C library in this folder."""

from __future__ import annotations

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ....op_graph.op_graph import Op
from ....op_graph.rows.reductions import positions
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.dtypes import name_of
from ...kernels.nests.inlining import inspected_values
from ..names.c_files import FileFunction
from ..names.naming import KernelNames, NativeFunction, head
from .library_kernels import fourier_function, library_text
from .matrices import ROUTINES, matrix_call
from .sorting import SORTS

# Ops that are always library calls; argmax and argmin of short rows are loop nests instead.
CALLED = frozenset(("sort", "argsort", "top_k", "scatter", "fourier_parts", *RUNNING, *ROUTINES))


def library_function(op: Op, names: KernelNames) -> NativeFunction:
    """Return the C function of a kernel that is a library call."""
    name = op.primitive.name
    if name == "checked":
        return _checked(op, names)
    if name == "scatter":
        return _scatter(op, names)
    if name in ROUTINES:
        function, call = matrix_call(op, names)
        return _wrapped(names, [call], function)
    if name == "fourier_parts":
        return _fourier(op, names)
    return _lines(op, names)


def function_of_call(op: Op) -> FileFunction:
    """Return the library function that ``op`` calls; it does not depend on the kernels."""
    name, x = op.primitive.name, op.args[0]
    if name == "fourier_parts":
        return library_text(*fourier_function(op))
    if name == "scatter":
        return library_text(
            f"scatter_{op.attrs.mode}", (name_of(op.dtype), name_of(op.args[1].dtype))
        )
    if name == "top_k" and not op.attrs.largest:
        name = "bottom_k"
    results = (name_of(op.dtype),) if name in RUNNING else ()
    return library_text(name, (name_of(x.dtype), *results))


def finite_function(op: Op, names: KernelNames, infinite: bool) -> NativeFunction:
    """Return a function that checks that a result is finite, or only not NaN if ``infinite``."""
    check = "check_numbers" if infinite else "check_finite"
    function = library_text(check, (name_of(op.dtype),))
    count = names.length(op.axes.size)
    x = names.pointer(op)
    body = [
        "double first = 0;",
        f"report[1] = {count};",
        f"const int failed = {function.name}({x}, {count}, report, &first);",
        "__builtin_memcpy(report + 2, &first, sizeof first);",
        "return failed;",
    ]
    return _wrapped(names, body, function, fails=True)


def _wrapped(
    names: KernelNames, body: list[str], called: FileFunction | None, fails: bool = False
) -> NativeFunction:
    names.calls(called.calls if called is not None and not called.units else ())
    parameters = tuple(names.parameters)
    lines = [f"static {head(parameters, fails)}", "{", "    (void)threads;"]
    lines += [*(f"    {line}" for line in body), "}", ""]
    shared = () if called is None else (called.header,)
    units = () if called is None else called.units
    external = () if called is None else called.external
    return NativeFunction(
        "\n".join(lines), parameters, shared, fails, units, tuple(names.called), external=external
    )


def _around(op: Op, at: int) -> tuple[Size, Size, Size]:
    """Return (outer, axis, inner) lengths of a contiguous value around axis ``at``."""
    lengths = op.axes.lengths
    return product(lengths[:at]), lengths[at], product(lengths[at + 1 :])


def _lines(op: Op, names: KernelNames) -> NativeFunction:
    """Return the call of a kernel that works along one axis: sort, prefix, argmax, argmin."""
    name, x = op.primitive.name, op.args[0]
    further: list[str] = []
    if name in RUNNING:
        further = [str(int(op.attrs.exclusive)), str(int(op.attrs.reverse))]
    elif name == "top_k":
        further = [names.length(op.attrs.k)]
    at = positions(op)[0] if name in ("argmax", "argmin") else x.axes.index(op.attrs.axis)
    function = function_of_call(op)
    sizes = [names.length(n) for n in _around(x, at)]
    works = [names.scratch() or "NULL"] if name in SORTS or name in RUNNING else []
    arguments = ["threads", names.memory(x), names.memory(op), *works, *sizes, *further]
    return _wrapped(names, [f"{function.name}({', '.join(arguments)});"], function)


def _scatter(op: Op, names: KernelNames) -> NativeFunction:
    x, index, value = op.args
    function = function_of_call(op)
    sizes = [names.length(n) for n in _around(x, x.axes.index(op.attrs.axis))]
    count = names.length(index.axes.size)
    pointers = [names.memory(each) for each in (x, index, value, op)]
    pointers.append(names.scratch() or "NULL")
    call = f"{function.name}({', '.join(['threads', *pointers, *sizes, count])});"
    return _wrapped(names, [call], function)


def _fourier(op: Op, names: KernelNames) -> NativeFunction:
    """Return the call of a transform, whose complex values have a last axis of their parts."""
    x = op.args[0]
    function = function_of_call(op)
    others = [axis.expression for axis in x.axes if axis.name != op.attrs.parts.name]
    at = x.axes.index(op.attrs.axis)
    before, after = others[at], op.axes[op.attrs.axis].expression
    sizes = (product(others[:at]), before, after, product(others[at + 1 :]))
    arguments = ["threads", names.memory(x), names.memory(op), *map(names.length, sizes)]
    return _wrapped(names, [f"{function.name}({', '.join(arguments)});"], function)


def _checked(op: Op, names: KernelNames) -> NativeFunction:
    """Return a function that fails if the smallest or the largest index is out of range."""
    found = inspected_values(op)
    length = names.length(op.attrs.length)
    lowest = f"-({length})" if op.attrs.from_end else "0"
    body = [
        f"report[0] = *{names.memory(found[0])};",
        f"report[1] = *{names.memory(found[-1])};",
        f"return report[0] < {lowest} || report[1] >= {length};",
    ]
    return _wrapped(names, body, None, fails=True)
