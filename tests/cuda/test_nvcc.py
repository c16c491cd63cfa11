"""Every golden kernel compiles for two architectures, where there is nvcc; warnings are errors."""

import re
import subprocess

import pytest

import geon
from geon.errors import DeviceError
from geon.transformers.pycuda.emit.cuda_module import timed_module
from geon.transformers.pycuda.runtime.nvrtc import by_nvcc, find_nvcc
from tests.cuda import test_attention, test_products, test_whole_loops
from tests.golden import registers
from tests.golden.emitting import cuda
from tests.golden.programs import PROGRAMS

pytestmark = pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
NAMES = list(PROGRAMS)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", registers.ARCHITECTURES)
@pytest.mark.parametrize("name", NAMES)
def test_golden_kernels_compile(name, architecture):
    found = registers.compiled(cuda(name, own=False).source, architecture)
    assert found
    assert all(used <= 255 for used, _ in found.values())
    lines = registers.FILE.read_text().splitlines()
    if registers.version() in lines[0]:  # another one may take other registers
        expected = next(line for line in lines if line.startswith(f"{name} {architecture}: "))
        assert registers.line(name, architecture, found) == expected


def test_a_text_that_is_refused():
    with pytest.raises(DeviceError, match="nvcc does not compile for sm_80"):
        by_nvcc("__global__ void f( {", "sm_80")
    assert by_nvcc('extern "C" __global__ void f() {}', "sm_80").startswith(b"\x7fELF")


def test_integers_wrap_around(tmp_path):
    """Compilers of CUDA take it that signed integers do not overflow."""
    x = geon.placeholder([geon.Axis("N")], "int32", name="x")
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation((x + 1) > x, x)
        assert list(f([1, 2**31 - 1])) == [True, False]
        (tmp_path / "module.cu").write_text(f.source)
    command = [find_nvcc(), "-ptx", "-arch=sm_90", "-w", "module.cu", "-o", "module.ptx"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert re.search(r"setp\.\w+\.s32", (tmp_path / "module.ptx").read_text())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_converted_by_instructions(dtype, tmp_path):
    x = geon.placeholder([geon.Axis("N")], dtype, name="x")
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation(geon.relu(x + 1), x)
        assert list(f([1, -2])) == [2, 0]
        (tmp_path / "module.cu").write_text(f.source)
    command = [find_nvcc(), "-ptx", "-arch=sm_80", "-w", "module.cu", "-o", "module.ptx"]
    subprocess.run(command, cwd=tmp_path, check=True)
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    assert f"cvt.rn.{short}.f32" in (tmp_path / "module.ptx").read_text()


def of_files(dtype):
    """Graphs and their inputs, whose kernels have the helpers of all files."""
    inputs = test_attention.operands(dtype)
    x, y = test_products.operands(dtype, "NC", "CM")
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    values = geon.placeholder([geon.Axis("T"), *x.axes[1:]], dtype, name="values")
    return (
        (test_attention.attended(*inputs, True), inputs),
        (test_products.made(x, y), [x, y]),
        ([geon.argsort(x, x.axes[0]), geon.sort(x, x.axes[1])], [x]),
        (geon.scatter(x, at, values, x.axes[0], mode="add"), [x, at, values]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("architecture", registers.ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_attention_products_and_sorts_compile(dtype, architecture):
    with geon.make_transformer("cuda-on-host", tf32=True) as transformer:
        for graph, given in of_files(dtype):
            f = transformer.computation(graph, *given)
            found = registers.compiled(f.source, architecture)
            assert all(used <= 255 and spilled <= 128 for used, spilled in found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize("name", test_whole_loops.results())
def test_whole_loops_compile(name):
    with geon.make_transformer("cuda-on-host") as transformer:
        f = transformer.computation(test_whole_loops.results()[name], *test_whole_loops.INPUTS)
        found = registers.compiled(f.source, "sm_80")
        assert all(used <= 255 and spilled == 0 for used, spilled in found.values()), found


def test_a_loop_that_is_timed_compiles():
    """The device has the clock that the host has a stand-in for."""
    with geon.make_transformer("cuda-on-host") as transformer:
        made = test_whole_loops.results()["nested"][:2]
        f = transformer.computation(made, *test_whole_loops.INPUTS)
        module, rows = timed_module(f.plan, f.linking)
        assert "clock64()" in module.source.whole and len(rows) > 3
        assert registers.compiled(module.source.whole, "sm_80")
