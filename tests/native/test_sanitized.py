"""Compiled code with checks of memory and arithmetic: right code passes, wrong code is caught."""

import os
import shlex
import subprocess
import sys
import textwrap

import pytest

import geon
from geon.errors import UnavailableError
from geon.transformers.native.toolchain.compilers import (
    find_toolchain,
    missing_compiler,
    sanitizer_environment,
)


def environment():
    """What a process needs to have the sanitizer; the test is skipped where there is none."""
    toolchain = find_toolchain()
    if toolchain is None:
        pytest.skip(missing_compiler())
    try:
        return {**os.environ, **sanitizer_environment(toolchain)}
    except UnavailableError as error:
        pytest.skip(str(error))


def run(*arguments):
    """The finished run of Python in a process with the sanitizer."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", ["samples or lengths", "random"])
def test_a_part_of_the_numeric_suite(part):
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "-k", part,
               "tests/native/sanitized_checks.py")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout


def test_a_process_without_the_sanitizer_is_told_what_to_run(tmp_path):
    environment()
    script = tmp_path / "a script.py"
    script.write_text(
        "import geon\n"
        "x = geon.placeholder([geon.Axis('N')])\n"
        "t = geon.NativeTransformer(sanitize=True)\n"
        "print(t.computation(geon.cumsum(geon.exp(x) * 0 + 2), x)([1, 2, 3]))\n"
    )
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "UnavailableError: sanitize=True" in done.stderr
    said = done.stderr.splitlines()[-1].strip()
    assert said.endswith(shlex.join(command))
    done = subprocess.run(said, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[2. 4. 6.]\n", 0), done.stderr


# What is computed, how many buffers its arena has, what is changed in its text, and the report.
WRONG = {
    "a result is written beyond its end": (
        "geon.cast(x, 'float64')", 0, "b0[i_1] = t", "b0[i_1 + 1] = t",
        "heap-buffer-overflow"),
    "an input is read beyond its end": (
        "geon.cast(x, 'float64')", 0, " + i_1];", " + i_1 + 1];", "heap-buffer-overflow"),
    "a buffer of the arena is written beyond its end": (
        "geon.cumsum(geon.flip(x, 'N') * 2)", 2, "b0[i_1] = t", "b0[i_1 + 1] = t",
        "use-after-poison"),
    "a shift by too much": (
        "geon.exp(x) + x", 0, "return 0;\n}", "return 1 << (n[0] + 29);\n}", "shift exponent"),
}  # fmt: skip
WRONG_MODULE = """
    import numpy as np
    import geon
    from geon.transformers.native.emit import compiler

    build = compiler.shared_object

    def build_wrong(toolchain, units, own):
        assert {right!r} in own[0], own[0]
        return build(toolchain, units, own=[own[0].replace({right!r}, {wrong!r}), *own[1:]])

    x = geon.placeholder([geon.Axis("N")])
    t = geon.NativeTransformer(sanitize=True)
    f = t.computation({result}, x)
    assert len(f.plan.buffers) == {buffers}
    compiler.shared_object = build_wrong
    print("reached", flush=True)
    f(np.ones(3, np.float32))
    print("not caught")
"""


@pytest.mark.parametrize("what", WRONG)
def test_wrong_code_is_caught(what):
    result, buffers, right, wrong, report = WRONG[what]
    source = textwrap.dedent(WRONG_MODULE).format(
        result=result, buffers=buffers, right=right, wrong=wrong
    )
    done = run("-c", source)
    assert done.stdout == "reached\n", done.stderr
    assert done.returncode != 0 and report in done.stderr, done.stderr


MEMORY_GIVEN_AGAIN = """
    import ctypes  # the sanitizer sees what the C library writes, and not what NumPy does
    import numpy as np
    from geon.transformers.native.runtime.sanitizing import RedZones
    from geon.transformers.runtime.memory import CACHE_LINE_BYTES as LINE
    from geon.transformers.runtime.memory import HOST, has_sanitizer
    from geon.transformers.runtime.memory import MIN_HUGE_PAGE_BYTES as ADVISED

    assert has_sanitizer()
    for _ in range(20):
        apart = RedZones([ADVISED, ADVISED], 64)
        size = apart.arena.size
        del apart
        again = HOST.allocate((size,), np.uint8)
        ctypes.memset(again.ctypes.data, 1, size)
        del again
    print("all of it is written", flush=True)
    over = HOST.allocate((ADVISED,), np.uint8)
    ctypes.memset(over.ctypes.data, 1, ADVISED + 2 * LINE)  # room to align is one
    print("not caught")
"""


def test_large_arenas_leave_no_marks_and_large_values_have_ends():
    """Memory of red zones may be used when it is given again; what lies past a value may not."""
    done = run("-c", textwrap.dedent(MEMORY_GIVEN_AGAIN))
    assert done.stdout == "all of it is written\n", done.stderr
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr


def test_it_is_an_option_of_make_transformer():
    environment()
    with pytest.raises(UnavailableError, match="address sanitizer; run\n  LD_PRELOAD="):
        geon.make_transformer("native", sanitize=True)
