"""NVRTC, which no header of a C library is beside, knows all that modules are made of."""

import pytest

import geon
from geon.errors import DeviceError
from geon.op_graph.rows.elementwise import copy
from geon.testing.samples import SAMPLES
from geon.transformers.printing.scalars.helpers import definitions, helpers
from geon.transformers.pycuda.emit.cuda_module import PRELUDE
from geon.transformers.pycuda.launches.dialect import by_instruction, cuda_text
from geon.transformers.pycuda.runtime import nvrtc
from geon.transformers.pycuda.runtime.primary_context import architecture
from tests.cuda import test_beside, test_nvcc, test_whole_loops
from tests.golden.emitting import Cuda
from tests.golden.programs import PROGRAMS
from tests.transformers.test_c_expressions import CASES, ROWS, STORED

pytestmark = pytest.mark.skipif(
    nvrtc.find_nvrtc() is None, reason="cuda-bindings or NVRTC is not installed"
)
NAMES = list(PROGRAMS)
ARCHITECTURE = architecture("a device", 9, 0)
N = geon.Axis("N")


def compiled(text):
    """The cubin of a text by NVRTC, even where nvcc would be asked."""
    found = nvrtc.find_nvrtc()
    assert found is not None
    return nvrtc.by_nvrtc(found[0], text, ARCHITECTURE)


def compiles(results, inputs, **options):
    """Whether NVRTC takes the module of a program."""
    source = Cuda(own=False, **options).computation(results, *inputs).source
    return compiled(source).startswith(b"\x7fELF")


def test_a_text_that_is_refused():
    with pytest.raises(DeviceError, match=r"(?s)NVRTC does not compile for sm_90.*unknown_name"):
        compiled('extern "C" __global__ void f(int *x) { *x = unknown_name; }')


def test_every_helper():
    """Helpers of arrays and of strips are native code's: all others compile."""
    own = ("restrict", "STRIP")
    names = [name for name, text in helpers().items() if not any(each in text for each in own)]
    left_out = set(helpers()) - set(names)
    assert all("_strip" in name for name in left_out)
    assert "geon_half_to_f32" in names and len(names) > 5 * len(left_out)
    for instead in ({}, {"instead": by_instruction}):
        text = [cuda_text(PRELUDE), definitions(names, **instead)]
        assert compiled("\n".join([*text, 'extern "C" __global__ void f() {}']))


def applied(name, inputs, result):
    """An elementwise row of tensors."""
    if name == "cast":
        return geon.cast(inputs[0], result)
    if name == "bitcast":
        return geon.bitcast(inputs[0], result)
    if name in ("copy", "stop_gradient"):
        return (copy if name == "copy" else geon.stop_gradient)(inputs[0])
    return ROWS[name].apply(*inputs)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", STORED)
def test_every_elementwise_row(dtype):
    inputs = {}
    results = []
    for name, operands, result in CASES:
        if operands[-1] == dtype:
            for k, each in enumerate(operands):
                inputs.setdefault((k, each), geon.placeholder([N], each, name=f"x{k}_{each}"))
            given = [inputs[k, each] for k, each in enumerate(operands)]
            results.append(applied(name, given, result))
    assert compiles(results, inputs.values())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("kind", SAMPLES)
def test_every_other_row(kind, dtype):
    results, inputs = [], []
    for sample in SAMPLES[kind]:
        if dtype in sample.dtypes and sample.row not in ("eigh", "eigvalsh", "qr", "svd", "pinv"):
            made, arrays = sample.results(dtype)
            results += made
            inputs += arrays
    assert not results or compiles(results, inputs)


@pytest.mark.parametrize("name", NAMES)
def test_golden_kernels(name):
    results, inputs = PROGRAMS[name]()
    assert compiles(results, inputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "tf32"),
    [
        ("float32", False),
        ("float32", True),
        *((d, False) for d in ("float64", "float16", "bfloat16")),
    ],
)
def test_attention_products_and_sorts(dtype, tf32):
    for results, inputs in test_nvcc.of_files(dtype):
        assert compiles(results, inputs, tf32=tf32)


def test_joined_kernels_and_random_numbers():
    inputs, update = test_beside.many(6)
    assert compiles(update, inputs)
    random = geon.Random(0)
    axes = [geon.Axis("D", 5)]
    assert compiles([random.normal(axes), random.uniform(axes)], [])


@pytest.mark.slow
@pytest.mark.parametrize("name", test_whole_loops.results())
def test_loops_of_one_launch(name):
    assert compiles(test_whole_loops.results()[name], test_whole_loops.INPUTS)
