"""Inside geon ops are compared with ``is`` alone: tests that look, by types and while others run.

``compared`` reads the package with mypy; ``identity_watch`` is on in every test.
"""

import dataclasses
import importlib
import inspect
import operator
import pkgutil
import re
from pathlib import Path

import pytest

import geon
from geon.op_graph.core import interning
from geon.op_graph.op_graph import Op, among, same_ops
from tests import compared, identity_watch

N, C = geon.Axis("N"), geon.Axis("C", 3)
ROOT = Path(geon.__file__).parent
PLAIN = {"tests", "testing"}


# By types ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_geon_compares_no_ops(tmp_path):
    assert compared.comparisons(ROOT, tmp_path) == []


WRONG = """
from collections.abc import Callable
from geon.op_graph.op_graph import Leaf, Op, Tensor

def compare(x: Tensor, y: Tensor | None, v: Leaf, anything: object) -> None:
    x == anything  # 1
    y != anything  # 2
    x.args == (v,)  # 3
    [x] == [x]  # 4
    (1, x) == (1, x)  # 5
    {"a": x} == {"a": x}  # 6

def search(x: Op, xs: list[Op], deep: list[tuple[int, Op]], anything: tuple[object, ...]) -> None:
    x in xs  # 7
    x not in x.args  # 8
    xs.index(x)  # 9
    deep.remove((1, x))  # 10
    x in {"a": x}.values()  # 11

def keyed(x: Op, found: dict[tuple[Op, bool], int], pairs: set[tuple[Op, Op]]) -> None:
    found[x, True]  # 12
    found.get((x, True))  # 13
    pairs.add((x, x))  # 14

def unknown(x: Op, kernel) -> None:
    x in kernel.results  # 15

def right(x: Op, xs: set[Op], known: dict[Op, int], rules: tuple[Callable[[Op], Op], ...]) -> None:
    x in xs and x in known and x in known.keys() and rules[0] in rules
    x is xs and x.axes == x.axes and x.dtype != x.axes.names and known == {x: 1} and xs == {x}
    type(x) in (Op, Tensor) and type(x) == Op
"""


@pytest.mark.slow
def test_what_compares_ops_is_found(tmp_path):
    wrong = tmp_path / "package" / "wrong.py"
    wrong.parent.mkdir()
    wrong.write_text(WRONG)
    (wrong.parent / "__init__.py").touch()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "geon").symlink_to(ROOT)
    found = {int(place.split(":")[1]) for place in compared.comparisons(wrong.parent, scratch)}
    lines = {k: line for k, line in enumerate(WRONG.splitlines(), 1) if re.search(r"# \d+$", line)}
    assert len(lines) == 15
    assert found == set(lines), [lines.get(k, k) for k in found ^ set(lines)]


def values():
    """Each class of geon that is a dataclass compared by its fields."""
    for module in pkgutil.walk_packages(geon.__path__, "geon.", lambda name: None):
        if PLAIN & set(module.name.split(".")) or module.name.endswith("__main__"):
            continue
        try:
            found = importlib.import_module(module.name)
        except geon.UnavailableError:  # of a library that is not installed
            continue
        for cls in vars(found).values():
            if inspect.isclass(cls) and cls.__module__ == module.name and "__eq__" in vars(cls):
                if dataclasses.is_dataclass(cls):
                    yield cls


def test_no_dataclass_compares_ops_that_it_holds():
    found = list(values())
    assert len(found) > 10
    holding = re.compile(r"\b(Op|Tensor|Leaf|ComputationOp|VoidOp)\b")
    assert [
        cls
        for cls in found
        if any(holding.search(str(f.type)) for f in dataclasses.fields(cls) if f.compare)
    ] == []


# While others run -------------------------------------------------------------------------------


def within_geon(text, **names):
    """Run a text as if it stood in a file of geon."""
    exec(compile(text, str(ROOT / "op_graph" / "somewhere.py"), "exec"), names)


@pytest.mark.parametrize(
    "text",
    [
        "x == y",
        "x != y",
        "x == None",
        "y == x.dtype",
        "None != x",
        "x in [y]",
        "x in (y, x)",
        "[y, x].index(x)",
        "[y].count(x)",
        "[x] == [y]",
        "(1, x) == (1, y)",
        "{'a': x} == {'a': y}",
        "Pair(x, 1) == Pair(y, 1)",
        "step == x",
        "step != step",
        "weakref.ref(x) == weakref.ref(y)",
        "max([x], key=lambda value: value == y)",
    ],
)
def test_a_comparison_within_geon_fails(text):
    import weakref

    x, y = geon.placeholder(N), geon.placeholder(N)
    names = {"x": x, "y": y, "Pair": Pair, "step": geon.assign(geon.Variable(), 1)}
    with pytest.raises(identity_watch.ComparedError, match=r"somewhere.py:1: .* with `is`"):
        within_geon(text, weakref=weakref, **names)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A value that compares what it holds."""

    op: Op
    number: int


def test_a_comparison_of_a_user_builds_an_op_at_his_line():
    x, y = geon.placeholder(N), geon.placeholder(N)
    made, line = x == y, inspect.currentframe().f_lineno
    assert made.primitive.name == "equal" and made.lineno == line
    within_geon("x is y; x.axes == y.axes; x in {y}; {x: 1} == {y: 1}; hash(x)", x=x, y=y)


# The table of ops -------------------------------------------------------------------------------


def test_keys_of_the_table_hold_no_ops():
    x = geon.placeholder([N, C])
    ops = [x + 1, x == x, geon.sum(x, C), x[:, 1:], geon.dot(x, x), geon.assign(geon.Variable(), 1)]
    keys = [entry.key for entry in interning.table.values()]
    assert len(keys) >= len(ops)
    assert not any(isinstance(part, Op) for key in keys for part in flat(key))


def flat(value):
    """What a tuple holds, and what the tuples in it hold."""
    if isinstance(value, tuple):
        for part in value:
            yield from flat(part)
    else:
        yield value


def test_a_number_that_has_the_hash_of_an_op_is_not_that_op():
    x = geon.placeholder(N, "int64")
    y = geon.placeholder(N, "int64")
    both = x + y
    for number in (hash(y), id(y)):
        assert hash(number) == number
        assert (x + number) is not both and geon.add(x, number) is not both


class Colliding(tuple):
    """A tuple whose hash is that of every other such tuple."""

    __slots__ = ()

    def __hash__(self):
        return 1


def test_keys_whose_hashes_collide_compare_no_ops():
    x, y = geon.placeholder(N), geon.placeholder(N)
    made = [x + y, y + x, x * y, geon.sum(x), geon.sum(y)]
    keys = [entry.key for entry in interning.table.values() if any(entry() is op for op in made)]
    assert len(keys) == len(made)
    within_geon("assert len({Colliding(key) for key in keys}) == len(keys)", keys=keys,
                Colliding=Colliding)  # fmt: skip


def test_ids_that_are_used_again_find_no_other_op():
    x = geon.placeholder(N)
    seen = set()
    for number in range(2000):
        y = geon.placeholder(N, name=str(number))
        made = x * y
        assert made.args[1] is y and made.args[1].name == str(number)
        seen.add(id(y))
        del y, made
    assert len(seen) < 2000  # ids were used again, or this proves nothing


# Helpers ----------------------------------------------------------------------------------------


def test_helpers_compare_by_identity():
    x, y = geon.placeholder(N), geon.placeholder(N)
    assert same_ops((), ()) and same_ops((x, y), [x, y])
    assert not same_ops((x, y), (y, x)) and not same_ops((x,), (x, y)) and not same_ops((), (x,))
    assert among(y, (x, y)) and not among(y, (x,)) and not among(y, ())
    assert operator.is_(x, x)
