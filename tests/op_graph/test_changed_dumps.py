"""Dumps with a few changes: each is refused by ``loads``, or is a graph that dumps and compiles."""

import json
import random
from copy import deepcopy

import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.op_graph import make, storage_leaves
from geon.op_graph.rewriting.driver import rewrite
from geon.op_graph.rewriting.simplify import simplify_rules
from geon.op_graph.text.dumps import dumps, loads
from geon.op_graph.transforms.functionalize import functional
from geon.op_graph.values.dtypes import FLOATS
from geon.testing.samples import SAMPLES
from tests.op_graph.graphs import GRAPHS

N, C = geon.Axis("N"), geon.Axis("C", 4)
NUMBERS = (0, 1, 2, 3, 5, 9, -1, 64, 2**40)
OTHERS = (None, True, [], {}, "", "N", ["tuple"], ["axes"])


def lines_of(text):
    return [json.loads(line) for line in text.split("\n")[:-1]]


def text_of(lines):
    return "\n".join([json.dumps(line) for line in lines])


@pytest.fixture(scope="module")
def sources():
    """The lines of many dumps: graphs of all kinds of ops, then a sample of each row."""
    samples = [sample for each in SAMPLES.values() for sample in each]
    single = [
        s.results(next((d for d in s.dtypes if d in FLOATS), s.dtypes[0]))[0] for s in samples
    ]
    return [[lines_of(dumps(g())) for g in GRAPHS], [lines_of(dumps(each)) for each in single]]


def places(value, path=()):
    """The paths of all values in a line but those of where it was made."""
    yield path
    listed = enumerate(value) if isinstance(value, list) else ()
    for key, part in value.items() if isinstance(value, dict) else listed:
        if key != "at":
            yield from places(part, (*path, key))


def found(value, path):
    for key in path:
        value = value[key]
    return value


def change(chosen, lines):
    """One change of a line: a number, a name, a part left out, put twice or elsewhere, a swap."""
    loops = [k for k, line in enumerate(lines) if "'body'" in str(line)]
    at = chosen.choice([chosen.randrange(1, len(lines)), len(lines) - 1, *loops])
    other = chosen.choice(lines[1:])
    paths = [(at, *path) for path in places(lines[at]) if path]
    if not paths:
        return
    path = chosen.choice(paths)
    *parent, key = path
    holder, value = found(lines, parent), found(lines, path)
    kind = chosen.randrange(7)
    numbers = [path for path in paths if type(found(lines, path)) is int]
    if kind <= 1 and numbers:
        *parent, key = chosen.choice(numbers)
        old = found(lines, parent)[key]
        new = chosen.choice(
            [old + 1, old - 1, chosen.choice(NUMBERS), chosen.randrange(len(lines))]
        )
        found(lines, parent)[key] = new
    elif kind == 2:
        del holder[key]
    elif kind == 3 and isinstance(value, list) and value:
        value.append(chosen.choice(value))
    elif kind == 4:
        lines[at], lines[lines.index(other)] = other, lines[at]
    elif kind == 5:
        holder[key] = chosen.choice(OTHERS)
    else:
        holder[key] = deepcopy(found(other, chosen.choice([*places(other)])))


def read_or_refused(text):
    """Whether ``text`` is read; then it dumps to what is read again, and compiles or is refused."""
    try:
        read = loads(text)
    except geon.DumpError as error:
        assert "line" in str(error)
        return False
    again = dumps(read)
    assert dumps(loads(again)) == again
    fed = [leaf for leaf in storage_leaves(*read) if not leaf.info.stored]
    with geon.NumPyTransformer() as transformer:
        try:
            assert transformer.computation(read, *fed).source
        except geon.RewriteError:
            raise
        except geon.GeonError:
            pass  # such as one assignment beside another
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_changed_dump_is_refused_or_compiles(sources, seed):
    chosen, taken = random.Random(seed), 0
    for _ in range(1500):
        lines = deepcopy(chosen.choice(chosen.choice(sources)))
        for _ in range(chosen.choice([1, 1, 1, 2])):
            change(chosen, lines)
        taken += read_or_refused(text_of(lines))
    assert taken > 50


# What was read once -------------------------------------------------------------------------------


def loop():
    x = geon.placeholder([N, C], name="x")
    return geon.scan(lambda carry, each: (carry * each, None), x[0], x, over=N)[0]


def changed(text, row, change):
    """``text`` with its first line of this row changed; its last line where there is none."""
    lines = lines_of(text)
    at = next((k for k, line in enumerate(lines) if isinstance(line, list) and line[0] == row), -1)
    change(lines[at], lines)
    return text_of(lines)


def of(row, lines):
    return next(k + 1 for k, line in enumerate(lines) if isinstance(line, list) and line[0] == row)


@pytest.mark.parametrize(
    ("row", "change", "problem"),
    [
        ("scan", lambda line, _: line[4]["attrs"].__setitem__(2, 9), "1 carries and 9 stacks"),
        (None, lambda line, lines: line.update(results=[of("scan", lines)]), "region_result"),
        (None, lambda line, lines: line.update(results=[of("parameter", lines)]), "outside of bod"),
        (None, lambda line, lines: line.update(results=[of("multiply", lines)]), "outside of bod"),
    ],
)
def test_what_only_a_body_has_is_refused(row, change, problem):
    with pytest.raises(geon.DumpError, match=rf"line \d+ .*{problem}.*give loads a text"):
        loads(changed(dumps(loop()), row, change))


def test_an_effect_on_a_loop_itself_is_refused():
    text = dumps(geon.sequential([loop(), loop()]))
    with pytest.raises(geon.DumpError, match="sequential is a loop or branch"):
        loads(
            changed(
                text, "sequential", lambda line, lines: line.__setitem__(1, [of("scan", lines)])
            )
        )


@pytest.mark.parametrize("length", [0, 3, "M"])
def test_another_length_in_a_line_is_refused(length):
    x = geon.placeholder([N])
    text = dumps(x * 2 + 1)
    with pytest.raises(geon.DumpError, match=r"line 4 .*multiply gives \(N\), not \(N:"):
        loads(changed(text, "multiply", lambda line, _: line[2][0].__setitem__(1, length)))


# Matrices -----------------------------------------------------------------------------------------


ROWS, COLUMNS = geon.Axis("I", 3), geon.Axis("J", 3)


def lu_solve(a, b):
    """Solve by packed factors, as lowered programs do."""
    solution = geon.linalg.solve(a, b, [ROWS, COLUMNS])
    return make(PRIMITIVES["lu_solve"], solution.args[1:], solution.attrs)


SYSTEMS = {
    "solve": lambda a, b: geon.linalg.solve(a, b, [ROWS, COLUMNS]),
    "lu_solve": lu_solve,
    "log_determinant": lambda a, _: geon.linalg.slogdet(a, [ROWS, COLUMNS])[1],
    "determinant": lambda a, _: geon.linalg.det(a, [ROWS, COLUMNS]),
    "pinv": lambda a, _: geon.linalg.pinv(a, [ROWS, COLUMNS]),
}


@pytest.mark.parametrize("row", SYSTEMS)
def test_factors_of_other_lengths_are_refused(row):
    a, b = geon.placeholder([ROWS, COLUMNS]), geon.placeholder([ROWS])
    text = dumps(SYSTEMS[row](a, b))
    assert dumps(loads(text)) == text
    other = of("svd" if row == "pinv" else "placeholder", lines_of(text))
    with pytest.raises(geon.DumpError, match=r"line \d+ .*axis 'I' has length [37] "):
        at = 0 if row == "lu_solve" else 1
        loads(changed(text, row, lambda line, _: line[1].__setitem__(at, other)))


def test_a_side_of_other_axes_than_the_factors_is_refused():
    a, b, k = (geon.placeholder(axes) for axes in ([ROWS, COLUMNS], [ROWS], [COLUMNS]))
    text = dumps([k, lu_solve(a, b)])
    other = of("placeholder", lines_of(text))  # k
    with pytest.raises(geon.DumpError, match=r"line \d+ .*lu_solve.*lacks the axis 'I'"):
        loads(changed(text, "lu_solve", lambda line, _: line[1].__setitem__(1, other)))


def along_rows(line, _):
    attrs = line[4]["attrs"]
    attrs[1] = attrs[0]


@pytest.mark.parametrize("sample", SAMPLES["matrix"], ids=str)
def test_rows_and_columns_along_one_axis_are_refused(sample):
    text = dumps(sample.results("float32")[0])
    problem = r"line \d+ .*is the axis of the rows and of the columns"
    with pytest.raises(geon.DumpError, match=problem):
        loads(changed(text, sample.row, along_rows))


# Guards -------------------------------------------------------------------------------------------


def test_a_guard_is_not_left_out():
    text = dumps(geon.placeholder([N]) + geon.placeholder([geon.Axis("N", 3)]))
    with pytest.raises(geon.DumpError, match=r"line 4 .*add without the guard N == 3"):
        loads(changed(text, "add", lambda line, _: line[4].pop("guards")))


def test_operands_in_another_dtype_are_refused():
    text = dumps(geon.placeholder([]) / geon.cast(N.length + 1, "float32"))
    with pytest.raises(geon.DumpError, match="divide takes float32, not int64"):
        loads(
            changed(text, "divide", lambda line, lines: line[1].__setitem__(1, of("length", lines)))
        )


def test_lengths_of_rewritten_ops_are_guarded():
    known = geon.Axis("N", 3)
    x, y = geon.placeholder([N]), geon.placeholder([C])
    wide = geon.broadcast(x, [known, C]) + y
    (made,) = rewrite(functional([wide]).roots, simplify_rules(), {})
    assert made.args[0].axes is not made.axes and [str(g.right) for g in made.guards] == ["3"]
    text = dumps(made)
    assert dumps(loads(text)) == text
    with pytest.raises(geon.DumpError, match=r"add gives \(N, C:4\), not \(N:3, C:4\)"):
        loads(changed(text, "add", lambda line, _: line[4].pop("guards")))


def test_another_length_changes_no_op_of_the_process():
    both = geon.iota(N) * geon.iota(N)
    text = dumps(both, notes=False)
    del both
    with pytest.raises(geon.DumpError):
        loads(changed(text, "multiply", lambda line, _: line[2][0].__setitem__(1, 0)))
    assert (geon.iota(N) * geon.iota(N)).axes == geon.Axes(N)
