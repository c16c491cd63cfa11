"""The text of a module: its kernels in groups, each with what it needs a text of its own."""

import dataclasses
import itertools
import re
import threading

import numpy as np
import pytest

import geon
from geon.errors import DeviceError
from geon.transformers.loading import compiling as compilation
from geon.transformers.pycuda.emit import cuda_module
from geon.transformers.pycuda.emit.cuda_module import make_module, timed_module
from geon.transformers.pycuda.kernels import tree_choice
from geon.transformers.pycuda.launches.device import MIN_TEXT_WORK, CudaSource, TextPiece
from geon.transformers.pycuda.runtime import gpu, host, nvrtc
from tests.golden.emitting import Cuda
from tests.golden.programs import PROGRAMS

from . import fake_cuda, test_beside, test_whole_loops
from .devices import transformer_on

PIECES = (
    TextPiece("first", "first", MIN_TEXT_WORK),
    TextPiece("helper"),
    TextPiece("second", "second", 3 * MIN_TEXT_WORK),
    TextPiece("third", "third", MIN_TEXT_WORK),
    TextPiece("last", "last", MIN_TEXT_WORK // 2),
)
SOURCE = CudaSource("common", PIECES)


def test_a_text_has_some_kernels_and_what_any_may_need():
    assert SOURCE.whole == "common\nfirst\nhelper\nsecond\nthird\nlast"
    assert SOURCE.own == "first\nhelper\nsecond\nthird\nlast"
    assert SOURCE.of(["last", "first"]) == "common\nfirst\nhelper\nlast"
    assert SOURCE.of(["first", "second", "third", "last"]) == SOURCE.whole


@pytest.mark.parametrize(
    ("most", "groups"),
    [
        (1, [["second", "first", "third", "last"]]),
        (2, [["second"], ["first", "third", "last"]]),
        (3, [["second"], ["first", "last"], ["third"]]),
        (9, [["second"], ["first"], ["third"], ["last"]]),
    ],
)
def test_groups_have_about_the_same_work(most, groups):
    assert SOURCE.divided(most) == groups


def test_little_work_is_one_group():
    pieces = [TextPiece("", name, MIN_TEXT_WORK // 4) for name in "abcdefg"]
    assert len(CudaSource("", tuple(pieces)).divided(8)) == 1
    assert len(CudaSource("", (*pieces, TextPiece("", "h", MIN_TEXT_WORK // 4))).divided(8)) == 2
    assert CudaSource("", (TextPiece("helper"),)).divided(8) == []


def sources():
    """Modules with helpers between kernels, with joined kernels, and with whole loops."""
    for make in PROGRAMS.values():
        results, inputs = make()
        yield Cuda().computation(results, *inputs)
    transformer = Cuda()
    slopes, update = test_beside.many(6)
    yield transformer.computation(update, *slopes)
    for result in test_whole_loops.results().values():
        yield transformer.computation(result, *test_whole_loops.INPUTS)


def test_no_kernel_needs_another_one():
    """Each kernel is a piece, and what it calls is in the text that has it alone."""
    helpers = 0
    for f in sources():
        stages = f.stages()
        module = make_module(stages.plan, stages.linking, annotate=False)
        found = [piece.kernel for piece in module.source.pieces if piece.kernel is not None]
        assert found == [kernel.name for kernel in module.kernels]
        assert all(piece.work > 0 for piece in module.source.pieces if piece.kernel is not None)
        for name in found:
            text = module.source.of([name])
            assert text.count('extern "C" __global__') == 1
            for called in set(re.findall(r"\b(?:part_\d+|kernel_\d+_inside)\b(?=\()", text)):
                assert re.search(rf"^GEON_INLINE void {called}\(", text, re.MULTILINE)
                helpers += 1
    assert helpers > 5


def alone(plan):
    """The plan with a form for each kernel of its own, also in bodies."""
    forms = {op: dataclasses.replace(form) for op, form in plan.forms.items()}
    inside = {
        op: dataclasses.replace(each, plans=tuple(map(alone, each.plans)))
        for op, each in plan.inside.items()
    }
    return dataclasses.replace(plan, forms=forms, inside=inside)


def test_kernels_of_one_structure_share_what_is_printed_once(monkeypatch):
    """The module is the same where each kernel is printed by itself."""
    counts = []
    printed = cuda_module.kernel_parts

    def counted(*args, **keywords):
        counts.append(1)
        return printed(*args, **keywords)

    monkeypatch.setattr(cuda_module, "kernel_parts", counted)
    shared = total = 0
    for f in sources():
        stages = f.stages()
        once = make_module(stages.plan, stages.linking, annotate=False)
        shared, counts = shared + len(counts), []
        each = make_module(alone(stages.plan), stages.linking, annotate=False)
        total, counts = total + len(counts), []
        assert once.source == each.source
        assert (once.steps, once.kernels) == (each.steps, each.kernels)
    assert 0 < shared < total


def test_equal_layers_are_printed_once(monkeypatch):
    """A further layer adds launches, and no text."""
    counts = {}
    printed = cuda_module.kernel_parts
    n, a = geon.Axis("N", 8), geon.Axis("A", 8)

    def counted(*args, **keywords):
        counts[layers] = counts.get(layers, 0) + 1
        return printed(*args, **keywords)

    monkeypatch.setattr(cuda_module, "kernel_parts", counted)
    for layers in (3, 9):
        x = y = geon.placeholder([n, a])
        weights = [geon.placeholder([a, a.prime]) for _ in range(layers)]
        for w in weights:
            y = geon.softmax(geon.rename(geon.dot(y, w), {a.prime: a}), a)
        assert Cuda().computation(y, x, *weights).source
    assert counts[3] == counts[9]


def test_a_nest_is_scheduled_once_for_all_that_walks_its_trees(monkeypatch):
    """These are sizes of scratch memory, text, profiles, and what is shown."""
    scheduled = []
    for name in ("schedule", "scheduled"):
        real = getattr(tree_choice, name)

        def counted(given, threads, real=real):
            scheduled.append(given)
            return real(given, threads)

        monkeypatch.setattr(tree_choice, name, counted)
    n, c, t = geon.Axis("N"), geon.Axis("C"), geon.Axis("T", 9)
    x, y = geon.placeholder([n, c]), geon.placeholder([n, c])
    first, turns = geon.sum(y, c), geon.iota(t)
    sums, _ = geon.scan(lambda s, k: (s + geon.max(x * k, c), None), first, turns, over=t)
    f = Cuda().computation([geon.softmax(x, c), sums], x, y)
    assert any(buffer.scratch for buffer in f.plan.buffers)
    planned, stages = len(scheduled), f.stages()
    assert "parts(C, N)" in f.explain("schedule") and f.source
    timed_module(stages.plan, stages.linking)
    assert f.explain("schedule") and f.source and len(scheduled) == planned > 0


# On a device --------------------------------------------------------------------------------------


@pytest.fixture
def compiling(monkeypatch, tmp_path):
    """NVRTC's stand-in, on a machine with this many processors and an empty cache."""
    if host.find_compiler() is None:
        pytest.skip("there is no C++ compiler")
    monkeypatch.setenv("GEON_CACHE", str(tmp_path))
    monkeypatch.setattr(gpu, "available", lambda: 4)
    monkeypatch.setattr(compilation, "available", lambda: 4)
    fake_cuda.Driver().install(monkeypatch)
    from cuda.bindings import nvrtc as made

    return made


def test_a_module_is_compiled_as_several_texts_that_are_found_again(compiling):
    axes = [geon.Axis(name, length) for name, length in zip("ABCD", (33, 20, 12, 5), strict=True)]
    x, *weights = (
        geon.placeholder(pair, name=f"w{k}")
        for k, pair in enumerate(zip((geon.Axis("N"), *axes), axes, strict=False))
    )
    result = x
    for w in weights:
        result = geon.relu(geon.dot(result, w))
    given = [
        np.random.default_rng(k).normal(size=shape).astype(np.float32)
        for k, shape in enumerate(itertools.pairwise((7, 33, 20, 12, 5)))
    ]
    with geon.NumPyTransformer() as numpy:
        expected = numpy.computation(result, x, *weights)(*given)
    for texts in (3, 0):
        before = len(compiling.compiled)
        with transformer_on(gpu.GpuDevice(0)) as transformer:
            f = transformer.computation(result, x, *weights)
            np.testing.assert_allclose(f(*given), expected, rtol=1e-5)
        assert len(compiling.compiled) - before == texts


def test_texts_are_compiled_at_one_time(compiling, monkeypatch):
    """Both are begun before either is done; the first that is refused is the error."""
    both = threading.Barrier(2, timeout=60)
    compile_one = compiling.nvrtcCompileProgram

    def met(program, count, options):
        both.wait()
        status = 6 if b"wrong" in program["source"] else 0
        return (status or compile_one(program, count, options)[0],)

    monkeypatch.setattr(compiling, "nvrtcCompileProgram", met)
    assert nvrtc.compiled_together(["one", "two"], "sm_90") == [b"one", b"two"]
    with pytest.raises(DeviceError, match="NVRTC does not compile for sm_90"):
        nvrtc.compiled_together(["one", "wrong"], "sm_90")
