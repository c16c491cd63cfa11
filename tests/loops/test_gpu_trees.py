"""Trees of GPU kernels: what threads do, which loads are vectors, and what the trees compute."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.op_graph.axes.affine import AffineIndex, Quotient, divide, variable
from geon.op_graph.axes.lengths import Length
from geon.testing.cases import for_each
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.loops.access import accesses, is_natural, used_buffers
from geon.transformers.loops.from_nest import from_nest
from geon.transformers.loops.rules.gpu import MAX_VECTOR_WORK, schedule, scheduled
from geon.transformers.loops.rules.gpu_threads import ELEMENTS_PER_VECTOR, Threads
from geon.transformers.loops.rules.parts import in_parts
from geon.transformers.loops.rules.tiles import TILE_PADDING_ELEMENTS, TILE_SIDE
from geon.transformers.loops.show import show
from geon.transformers.loops.tree import Kind, Role, Space, loops_of
from geon.transformers.pycuda.kernels.split_reductions import divisible
from geon.transformers.pycuda.kernels.thread_text import launched
from geon.transformers.pycuda.kernels.tree_choice import is_by_threads, tile_trees
from tests.golden.emitting import Cuda
from tests.kernels.transformer import KernelsTransformer

from .programs import Program
from .trees import agree, memory_of, nests_of

LENGTHS = {"N": (1, 2, 5), "M": (1, 3, 4, 5, 8), "C": (1, 3, 4, 5, 7, 8, 9, 12, 16, 18)}


def computation(results, *leaves):
    return Cuda().computation(results, *leaves)


def trees(results, *leaves):
    """The trees of a program's kernels."""
    kernels = computation(results, *leaves).plan.schedule.kernels
    return [schedule(kernel.work, Threads()) for kernel in kernels]


def roles(tree):
    """The role and kind of each loop, and the number of its iterations."""
    return [(loop.role, loop.kind, loop.size) for loop in loops_of(tree.body)]


@for_each("seed", range(60))
def test_trees_of_threads_compute_what_nests_do(seed):
    program, random = Program(seed, LENGTHS), np.random.default_rng(seed)
    with KernelsTransformer() as transformer:
        for nest in nests_of(transformer.computation(program.results, *program.leaves)):
            if is_by_threads(nest):
                memory = memory_of(nest, program.lengths, random)
                tree = schedule(nest, Threads())
                assert not [x for x in tree.refusals if not x.startswith("vectors")]
                agree(nest, tree, memory, program.lengths, random)


@for_each("seed", range(60))
@for_each("team", [2, 4])
def test_trees_of_teams_compute_what_nests_do(seed, team):
    program, random = Program(seed, LENGTHS), np.random.default_rng(seed)
    with KernelsTransformer() as transformer:
        for nest in nests_of(transformer.computation(program.results, *program.leaves)):
            if nest.across is None and any(step.reductions for step in nest.passes):
                memory = memory_of(nest, program.lengths, random)
                tree = schedule(nest, Threads(team))
                assert not [x for x in tree.refusals if x.startswith("team")]
                agree(nest, tree, memory, program.lengths, random)


@for_each("seed", range(60))
@for_each("team", [2, 4])
def test_trees_of_columns_compute_what_nests_do(seed, team):
    program, random = Program(seed, LENGTHS), np.random.default_rng(seed)
    with KernelsTransformer() as transformer:
        for nest in nests_of(transformer.computation(program.results, *program.leaves)):
            if nest.across is not None and not is_by_threads(nest):
                memory = memory_of(nest, program.lengths, random)
                tree = schedule(nest, Threads(team, beside=True))
                assert not [x for x in tree.refusals if x.startswith("team")]
                assert not any(loop.role is Role.VECTOR for loop in loops_of(tree.body))
                agree(nest, tree, memory, program.lengths, random)


@for_each("seed", range(60))
@for_each("count", [1, 3])
@for_each("known", [False, True])
def test_trees_of_parts_compute_what_nests_do(seed, count, known):
    program, random = Program(seed, LENGTHS), np.random.default_rng(seed)
    with KernelsTransformer() as transformer:
        for nest in nests_of(transformer.computation(program.results, *program.leaves)):
            memory, passes = memory_of(nest, program.lengths, random), divisible(nest)
            if passes:
                threads = Threads(4, beside=nest.across is not None)
                counts = [count if known else Length.of("parts(N)")] * len(passes)
                trees = in_parts(from_nest(nest), counts, threads)
                trees = [scheduled(tree, threads) for tree in trees]
                lengths = {**program.lengths, "parts(N)": count}
                agree(nest, trees, memory, lengths, random)


def test_a_thread_takes_four_adjacent_elements():
    x = geon.placeholder([Axis("N", 40), Axis("C", 6)])
    (tree,) = trees(x * x + 1, x)
    assert roles(tree) == [
        (Role.TASK, Kind.VECTORS, 240 // ELEMENTS_PER_VECTOR),
        (Role.VECTOR, Kind.LANES, ELEMENTS_PER_VECTOR),
    ]


@pytest.mark.parametrize("known", [False, True])
def test_elements_that_fill_no_vector_have_threads_of_their_own(known):
    x = geon.placeholder([Axis("C", 11 if known else None)])
    (tree,) = trees(x * x, x)
    (main, rest), length = tree.body, 11 if known else x.axes[0].expression
    assert (main.role, main.size) == (Role.TASK, length // 4)
    assert (rest.role, rest.kind, rest.size) == (Role.TASK, Kind.REST, length - length // 4 * 4)


@pytest.mark.parametrize(("length", "divisor"), [(24, 6), (22, 22)])
def test_elements_of_a_vector_share_a_division(length, divisor):
    """Where all have one quotient: rows end between vectors."""
    n, k, random = Axis("N", 16), Axis("K", length), np.random.default_rng(length)
    x, y = geon.placeholder([n, k]), geon.placeholder([n])
    f = computation(geon.sum(x * geon.broadcast(y, [n, k])), x, y)
    (kernel,) = f.plan.schedule.kernels
    tree = schedule(kernel.work, Threads(4))
    atoms = [atom for each in accesses(tree.body) for atom in each.offset.terms]
    assert {atom.by for atom in atoms if isinstance(atom, Quotient)} == {divisor}
    assert any(loop.kind is Kind.LANES for loop in loops_of(tree.body))
    agree(kernel.work, tree, memory_of(kernel.work, {}, random), {}, random)


def long_chain(x, count):
    """An element with this many operations, a load and a store."""
    for _ in range(count - 2):
        x = x * 1.5
    return x


@pytest.mark.parametrize("count", [MAX_VECTOR_WORK, MAX_VECTOR_WORK + 1])
def test_long_elements_are_not_vectors(count):
    x = geon.placeholder([Axis("C", 64)])
    (tree,) = trees(long_chain(x, count), x)
    vectors = [loop for loop in loops_of(tree.body) if loop.role is Role.VECTOR]
    assert len(vectors) == (count == MAX_VECTOR_WORK)
    refused = f"not vectors: an element has {count} operations"
    assert (refused in show(tree)) == (count > MAX_VECTOR_WORK)


def test_the_reason_of_a_refusal_is_shown():
    x = geon.placeholder([Axis("C", 64)])
    (nest,) = (kernel.work for kernel in computation(x * x, x).plan.schedule.kernels)
    own = next(k for k, op in enumerate(nest.operands) if op is x)
    assert "not vectors: memory may begin between vectors" in show(
        schedule(nest, Threads(unaligned=frozenset([own])))
    )
    (turned,) = trees(geon.flip(x, "C") * 2, x)
    assert "not vectors: no load is of adjacent elements" in show(turned)
    (small,) = trees(x[:3] * 2, x)
    assert "not vectors: i_0 has fewer than 4 iterations" in show(small)


def test_what_is_stored_for_rows_has_threads_of_its_own():
    n, c = Axis("N", 40), Axis("C", 6)
    x, v = geon.placeholder([n, c]), geon.placeholder([n])
    (tree,) = trees([x * geon.exp(v), geon.exp(v)], x, v)
    assert sorted(size for role, _, size in roles(tree) if role is Role.TASK) == [6, 10, 40]


def test_one_thread_runs_all_statements_outside_of_tasks():
    """Also where tasks are between them: it keeps the buffers that they share."""
    rows, columns = Axis("I", 3), Axis("J", 3)
    a = geon.placeholder([rows, columns])
    determinant = geon.linalg.det(a, [rows, columns])
    between = 0
    for kernel in computation([determinant, geon.deriv(determinant, a)], a).plan.schedule.kernels:
        if isinstance(kernel.work, Nest):
            tree = schedule(kernel.work, Threads())
            found = launched(tree)
            alone = [each for loops, body in found if not loops for each in body]
            assert alone == [each for each in tree.body if getattr(each, "role", 0) != Role.TASK]
            assert sum(not loops for loops, _ in found) == bool(alone)
            used = [number for _, body in found for number in used_buffers(body)]
            assert len(used) == len({*used})
            numbers = [tree.body.index(each) for each in alone]
            between += bool(alone) and numbers[-1] - numbers[0] >= len(numbers)
    assert between == 1


def test_rows_without_elements_have_no_loops():
    x = geon.placeholder([Axis("N"), Axis("C", 0), Axis("D", 4)])
    f = computation(geon.exp(x) + 1, x)
    assert [schedule(kernel.work, Threads()).body for kernel in f.plan.schedule.kernels] == [()]
    assert f.explain("emit")


def test_short_rows_are_folded_by_one_thread():
    n, c = Axis("N", 40), Axis("C", 4)
    x = geon.placeholder([n, c])
    (tree,) = trees(geon.sum(x * x, c), x)
    assert roles(tree) == [(Role.TASK, Kind.MAIN, 40), (Role.SERIAL, Kind.MAIN, 4)]


def test_explain_shows_the_trees_of_threads():
    n, c, d = Axis("N", 512), Axis("C", 512), Axis("D", 4000)
    x, y = geon.placeholder([n, c]), geon.placeholder([c, d])
    shown = computation([x + 1, geon.sum(y, d)], x, y).explain("schedule")
    assert "task j_0 < 65536 (vectors):  -- a thread for each iteration" in shown
    assert "task i_0 < 512:  -- a team of 256 threads for each iteration" in shown
    assert "with add of the 256 lanes of b" in shown


def test_rows_of_open_length_have_a_form_for_warps_and_one_for_blocks():
    x = geon.placeholder([Axis("N", 300), Axis("C")])
    shown = computation(geon.sum(x, "C"), x).explain("schedule")
    warps, blocks = shown[shown.index("if -C + 1024 >= 0:") :].split("else:")
    assert "a team of 32 threads" in warps and "a team of 256 threads" in blocks


@pytest.mark.parametrize("sides", [(64, 64), (70, 33), (3, 200), (None, 40), (None, None)])
def test_transposed_passes_go_through_tiles(sides):
    n, c = (Axis(name, side) for name, side in zip("NC", sides, strict=True))
    x, v = geon.placeholder([n, c]), geon.placeholder([n])
    turned = geon.reorder(x, [c, n]) * 2 + v
    (kernel,) = computation(turned, x, v).plan.schedule.kernels
    ((team, tree, _),) = tile_trees(kernel.work)
    threads = [loop for loop in loops_of(tree.body) if loop.role is Role.THREAD]
    assert [loop.size for loop in threads] == [team.size // TILE_SIDE, TILE_SIDE] * 2
    (tile,) = [buffer for buffer in tree.buffers if buffer.space is Space.SHARED]
    assert tile.size == TILE_SIDE * (TILE_SIDE + TILE_PADDING_ELEMENTS)
    lengths, random = {"N": 40, "C": 67}, np.random.default_rng(0)
    agree(kernel.work, tree, memory_of(kernel.work, lengths, random), lengths, random)
    assert not tree.refusals


def test_which_indices_are_never_negative():
    """Guards of other indices are compared with 0 in the text of a thread."""
    i, j = variable("i"), variable("j")
    quotient, remainder = divide(i + 3, 4)
    for index in (i, i * 3 + j + 2, quotient * 4 + remainder, remainder + 1):
        assert is_natural(index), index
    for index in (i - 1, remainder - 1, j - i, AffineIndex((), -1), divide(i - 1, 4)[0]):
        assert not is_natural(index), index
