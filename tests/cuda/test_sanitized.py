"""Kernels touch no memory but what they are given, and do nothing undefined."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from geon.transformers.pycuda.runtime.host import find_compiler

ROOT = Path(__file__).parents[2]


def library():
    """The sanitizer's library; None where the compiler has none."""
    compiler = find_compiler()
    if compiler is None:
        return None
    command = [compiler[0], "-print-file-name=libasan.so"]
    found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return found if os.path.isabs(found) and os.path.exists(found) else None


pytestmark = pytest.mark.skipif(library() is None, reason="the compiler has no address sanitizer")


def run(what):
    env = {
        **os.environ,
        "LD_PRELOAD": library(),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        "PYTHONPATH": str(ROOT),
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, "-m", "tests.cuda.sanitized", what]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_kernels_stay_inside():
    done = run("everything")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "done\n"


def test_an_access_outside_is_found():
    done = run("outside")
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr, done.stderr[-4000:]
