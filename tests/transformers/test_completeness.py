"""A row that a target knows by half is an error that names what is missing, never a number."""

import itertools

import numpy as np
import pytest

import geon
from geon.op_graph.axes.axes import Axes
from geon.op_graph.axes.index_map import view_map
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES, Primitive
from geon.op_graph.op_graph import ComputationOp, deep_order, intern
from geon.op_graph.rows.reducers import ANY_NAN
from geon.op_graph.rows.reductions import ReducedAxes
from geon.op_graph.values.dtypes import BOOL
from geon.testing.samples import SAMPLES
from geon.transformers.kernels.ir.nest import FOLDED
from geon.transformers.native.trees import vector_statements
from geon.transformers.numpy import arrays, kernels, table
from geon.transformers.printing.scalars import c_expressions
from tests.kinds import numpy_only
from tests.places import here

A, B = geon.Axis("A", 2), geon.Axis("B", 3)
native_only = pytest.mark.parametrize("transformer_name", ["native"])
NUMBERS = itertools.count()  # tables are read into caches by name: each set of entries has its own


@pytest.fixture
def row():
    """Makes rows, which are gone after the test."""
    made = []

    def new(kind, reference, cls=Primitive, **facts):
        name = f"fake_{kind}_{next(NUMBERS)}"
        made.append(cls(name, kind, "A row of a test.", reference=reference, **facts))
        return made[-1]

    yield new
    for primitive in made:
        del PRIMITIVES[primitive.name]


def halves(tables):
    """Every set of the tables' numbers, the whole one last."""
    numbers = range(len(tables))
    return [
        set(c) for size in (*numbers, len(tables)) for c in itertools.combinations(numbers, size)
    ]


def tried(transformer, monkeypatch, tables, make, data):
    """The result with each set of tables; an error must name row, op, line, target and tables."""
    for chosen in halves(tables):
        with monkeypatch.context() as patch:
            op, x, line = make()
            name = op.primitive.name
            for number in chosen:
                _, where, entry = tables[number]
                patch.setitem(where, name, entry)
            f = transformer.computation(op, x)
            if len(chosen) == len(tables):
                return f(data)
            with pytest.raises(geon.IncompleteError) as caught:
                f(data)
            assert isinstance(caught.value, NotImplementedError)
            text = str(caught.value)
            for part in (repr(name), line, str(op), f"the {transformer.target.name} target"):
                assert part in text
            for number, (said, _, _) in enumerate(tables):
                assert (said in text) == (number not in chosen), (chosen, text)
    raise AssertionError("there is no whole set")


# A reduction ------------------------------------------------------------------------------------

NANS = np.array([[1, np.nan, 2], [3, 4, 5]], np.float32)


def any_nan(row):
    def make():
        def reference(op, x):
            return np.isnan(x).any(1)

        x = geon.placeholder([A, B])
        primitive = row("reduction", reference, attributes=ReducedAxes)
        made, line = intern(ComputationOp, primitive, (x,), (("B",),), Axes(A), BOOL), here()
        return made, x, line

    return make


@native_only
@pytest.mark.parametrize("complete", [False, True])
def test_a_reduction_needs_its_reducer_alone_in_native_code(transformer, row, complete):
    x = geon.placeholder([A, B])
    facts = {"reducer": ANY_NAN} if complete else {}
    primitive = row("reduction", lambda op, x: np.isnan(x).any(1), attributes=ReducedAxes, **facts)
    op, line = intern(ComputationOp, primitive, (x,), (("B",),), Axes(A), BOOL), here()
    f = transformer.computation(op, x)
    if complete:
        np.testing.assert_array_equal(f(NANS), [True, False])
        return
    with pytest.raises(geon.IncompleteError) as caught:
        f(NANS)
    for part in (repr(primitive.name), line, transformer.target.name, "a reducer of the row"):
        assert part in str(caught.value)


@numpy_only
def test_a_reduction_by_halves_in_numpy(transformer, monkeypatch, row):
    text = "np.isnan({0}).any(axis={axis}, out={o})"
    tables = [("REDUCTIONS of transformers/numpy/table.py", table.REDUCTIONS, text)]
    got = tried(transformer, monkeypatch, tables, any_nan(row), NANS)
    np.testing.assert_array_equal(got, [True, False])


# An elementwise row -----------------------------------------------------------------------------


def cube(row):
    def make():
        x = geon.placeholder([A, B])
        primitive = row("elementwise", lambda x: x * x * x, Elementwise)
        made, line = primitive(x), here()
        return made, x, line

    return make


@native_only
def test_an_elementwise_row_in_native_code(transformer, monkeypatch, row):
    where = "for float32 in transformers/printing/scalars/c_expressions.py"
    tables = [(where, c_expressions.FLOAT_ROWS, "{0} * {0} * {0}")]
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = tried(transformer, monkeypatch, tables, cube(row), data)
    np.testing.assert_array_equal(got, data**3)


@numpy_only
def test_an_elementwise_row_in_numpy(transformer, monkeypatch, row):
    text = ("np.power({0}, 3, out={o})",)
    tables = [("TABLE of transformers/numpy/table.py", table.TABLE, text)]
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = tried(transformer, monkeypatch, tables, cube(row), data)
    np.testing.assert_array_equal(got, data**3)


# A view -----------------------------------------------------------------------------------------


def mirrored(op, index):
    (name,) = op.attrs.reduced
    return view_map({**index, name: index[name] * -1 + (op.axes[name].expression - 1)})


@pytest.mark.parametrize("complete", [False, True])
def test_a_view_needs_its_index_map_alone(transformer, row, complete):
    x = geon.placeholder([A, B])
    facts = {"index_map": mirrored, "view": True} if complete else {}
    primitive = row("movement", lambda op, x: x[:, ::-1], attributes=ReducedAxes, **facts)
    op, line = intern(ComputationOp, primitive, (x,), (("B",),), x.axes, x.dtype), here()
    f = transformer.computation(op, x)
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    if complete:
        np.testing.assert_array_equal(f(data), data[:, ::-1])
        return
    with pytest.raises(geon.IncompleteError) as caught:
        f(data)
    for part in (repr(primitive.name), line, transformer.target.name, "an index_map of the row"):
        assert part in str(caught.value)


# Other kinds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ordered", "contraction", "indexing", "leaf"])
def test_a_row_of_another_kind(transformer, row, kind):
    x = geon.placeholder([A, B])
    primitive = row(kind, lambda op, x: x, attributes=ReducedAxes)
    op, line = intern(ComputationOp, primitive, (x,), (("B",),), x.axes, x.dtype), here()
    with pytest.raises(geon.IncompleteError) as caught:
        transformer.computation(op + 1.0, x)(np.zeros((2, 3)))
    for part in (repr(primitive.name), line, transformer.target.name, f"the {kind} row", ".py"):
        assert part in str(caught.value)


# What geon has ----------------------------------------------------------------------------------


def test_every_row_has_all_that_its_kind_needs(transformer):
    """Every sample of every row, after the target's lowerings."""
    lacks = transformer.target.lacks
    assert transformer.target.lacks is lacks
    seen = set()
    graphs = [
        sample.results(dtype)
        for sample in itertools.chain(*SAMPLES.values())
        for dtype in sample.dtypes
    ]
    x, v = geon.placeholder(geon.Axis("N")), geon.Variable(A, initial_value=0)
    graphs.append(([geon.Random(1).uniform(A) + v * geon.tensor_size(x), x], {x: None}))
    last, stacked = geon.scan(
        lambda c, each: (geon.sin(c) + each, c), geon.constant(0.0), x, over="N"
    )
    chosen = geon.case_of(geon.cast(last, "int64"), [lambda: geon.sin(x), lambda: geon.cos(x)])
    until = geon.while_loop(lambda c: c < last, lambda c: c + 1, 0.0)
    found = geon.fixed_point(lambda y: y / 2 + last, 0.0)
    graphs.append(([last, stacked, chosen, until, found], {x: None}))
    on_gpu = transformer.target.name.startswith("cuda")
    without = {"eigh", "eigvalsh", "qr", "svd"} if on_gpu else set()
    refusal = r"no generated kernel on GPUs; .*cusolver.*native"
    for results, feeds in graphs:
        f = transformer.computation(results, *feeds)
        if without & {op.primitive.name for op in deep_order(results)}:
            with pytest.raises(geon.UnavailableError, match=refusal):
                _ = f.program
            continue
        seen |= {op.primitive.name for op in deep_order(f.program.roots)}
    kinds = {name: row.kind for name, row in PRIMITIVES.items()}
    wanted = {name for name, kind in kinds.items() if kind not in ("effect", "elementwise", "call")}
    # A while loop on all targets, the check of a position, what packed factors give, and
    # transforms of complex numbers, which become those of parts or products.
    lowered = {"fixed_point", "converged", "solve", "determinant", "log_determinant", "pinv"}
    lowered |= {"fourier"} | (set() if transformer.target.transforms else {"fourier_parts"})
    if on_gpu:  # by elements
        lowered |= without | {"cholesky", "lu", "lu_solve", "triangular_solve"}
    assert wanted - seen == lowered, sorted(wanted - seen)


def test_tables_name_only_rows():
    for known in (vector_statements.REDUCTIONS, FOLDED, arrays.SHOWN, kernels.SPECIAL):
        assert set(known) <= PRIMITIVES.keys(), sorted(set(known) - PRIMITIVES.keys())


def test_what_loops_fold_in_lanes_has_a_sign_for_compilers():
    assert vector_statements.REDUCTIONS.keys() == FOLDED
