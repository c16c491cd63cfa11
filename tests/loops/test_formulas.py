"""Pages of ``explain`` are text for people: formulas, and no representation of an object."""

import re

import geon
from geon import Axis
from geon.op_graph.axes.affine import divide, variable
from geon.op_graph.axes.lengths import Length
from geon.testing.cases import for_each
from tests.golden.emitting import Cuda
from tests.large.programs import Seeded
from tests.random_effects import add_effects
from tests.random_graphs import Builder, finished
from tests.test_random_graphs import THEMES

REPRESENTATION = re.compile(
    r"<[\w.]+ [^<>]*>|\b[A-Z]\w*\(\w+=|<\w+\.\w+: | object at 0x|frozenset\("
)
PAGES = ("build", "functional", "simplify", "schedule", "plan")
STEPS = 12  # of a random program


def pages_of(transformer, case):
    """The pages of a program, without the source, which is text of another language."""
    f = transformer.computation(case.results, *case.placeholders)
    return {page: f.explain(page) for page in PAGES}


@for_each("seed", range(24))
def test_no_page_of_a_random_program_has_the_representation_of_an_object(seed):
    b = Builder(Seeded(f"pages {seed}"))
    b.placeholder("float32")
    b.placeholder("bool", [Axis(name) for name in "NMK"])
    b.placeholder()
    b.variable()
    theme = list(THEMES)[seed % len(THEMES)]
    for _ in range(STEPS):
        b.choice(THEMES[theme])(b)
    case = finished(b, add_effects(b) if seed % 3 == 0 else [])
    for transformer in (geon.NativeTransformer(), Cuda(), geon.NumPyTransformer()):
        for page, text in pages_of(transformer, case).items():
            found = REPRESENTATION.search(text)
            assert found is None, f"{type(transformer).__name__}, {page}: {found[0]}"


def test_gathered_rows_and_guarded_elements_are_formulas():
    n, v, c = Axis("N", 7), Axis("V", 20), Axis("C", 5)
    table, ids = geon.placeholder([v, c]), geon.placeholder([n], dtype="int64")
    f = Cuda().computation(geon.gather(table, ids, v), table, ids)
    assert "x0[5 * i_0 + i_1] = x2[5 * wrap(x1[i_0], 20) + i_1]" in f.explain("schedule")


def test_divisions_of_an_index_are_factors():
    i, j = variable("i"), variable("j")
    quotient, remainder = divide(i * 3 + j, 4)
    assert str(quotient * 8 + remainder) == "8 * ((3 * i + j) // 4) + ((3 * i + j) % 4)"
    assert str(divide(quotient, 3)[0]) == "(((3 * i + j) // 4) // 3)"
    length = Length.of("N") + 1
    assert str(divide(i, length)[0] * length + length) == "(N + 1) * (i // (N + 1)) + N + 1"
