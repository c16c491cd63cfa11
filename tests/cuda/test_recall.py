"""A program that some process compiled is found by its graph, before any stage of it runs."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import geon
from geon.transformers.cache.serialization import from_json, to_json
from geon.transformers.pycuda.emit.record import PARTS
from geon.transformers.pycuda.launches import device, launch_ir, library_requests
from geon.transformers.pycuda.products import library_dispatch, scratch
from geon.transformers.pycuda.runtime import host
from geon.transformers.pycuda.runtime.bound_program import CudaProgram
from geon.transformers.sizes import scratch as sizes

from .devices import LateDevice, transformer_on
from .test_lengths import GRAPHS, data, v, x

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
ROOT = Path(__file__).parents[2]
PROGRAM = """
import numpy as np
import geon

N, C = geon.Axis("N"), geon.Axis("C", 5)
x = geon.placeholder([N, C])
w = geon.variable([C], initial_value=0.5)
places = geon.placeholder([N], "int64")
y = geon.print(geon.softmax(x * w, C), "shares")
with geon.make_transformer("cuda-on-host"{options}) as transformer:
    square = geon.dot(y, geon.rename(y, {{"N": "M"}}))
    f = transformer.computation([y, square, geon.assign(w, w * 2)], x)
    given = [np.arange(5 * n).reshape(n, 5) for n in (3, 4, 3)]
    found = [np.concatenate([result.ravel() for result in f(each)[:2]]) for each in given]
    g = transformer.computation(geon.gather(w, places, C), places)
    try:
        g([1, 7])
    except geon.IndexRangeError as error:
        print(error)
    print("ran the stages" if "schedule" in f.stages()._made else "found")
    print(*[each.tobytes().hex() for each in found], transformer.get(w).tobytes().hex())
    print(f.peak_bytes({{N: 3}}))
"""


def ran(cache, options="", debug=""):
    """Whether stages ran, and what a process of its own printed."""
    environment = {**os.environ, "GEON_CACHE": str(cache), "GEON_DEBUG": debug}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-c", PROGRAM.format(options=options)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    place = next(k for k, line in enumerate(lines) if line in ("ran the stages", "found"))
    return lines[place], lines[:place] + lines[place + 1 :]


def windowed():
    """Weighted sums of windows along the columns of ``x``."""
    places, made = geon.Axis("R", 3), geon.Axis("K", 2)
    kernel = geon.Variable([made, places], initial_value=0.5, name="kernel")
    along = x.axes[1]
    return geon.convolution(x, kernel, {along: geon.Window(places, pad=1)}, [])


def test_the_second_process_runs_no_stage_and_computes_the_same_bits(tmp_path):
    first, said = ran(tmp_path)
    assert first == "ran the stages"
    assert ran(tmp_path) == ("found", said)
    assert ran(tmp_path, ", products='cublaslt'")[0] == "ran the stages"
    assert ran(tmp_path, debug="verify")[0] == "ran the stages"
    for file in tmp_path.glob("program-*"):
        file.write_bytes(file.read_bytes()[:-9] + b"something")
    assert ran(tmp_path) == ("ran the stages", said)


BY_LIBRARY = {"product by a library": GRAPHS["product"], "convolution by a library": windowed()}
OPTIONS = {
    "product by a library": {"products": "cublaslt"},
    "convolution by a library": {"convolutions": "cudnn"},
}


@pytest.mark.parametrize("name", [*GRAPHS, *BY_LIBRARY])
def test_what_is_kept_is_json_and_computes_the_same(name, monkeypatch):
    monkeypatch.setattr(library_dispatch, "MIN_LIBRARY_MULADDS", 1)
    inputs = [x, v] if name in ("elements", "vector") else [x]
    graph = {**GRAPHS, **BY_LIBRARY}[name]
    with transformer_on(LateDevice(), **OPTIONS.get(name, {})) as transformer:
        f = transformer.computation(graph, *inputs)
        kept = f.stages().compiled.record
        assert any("Ask" in str(step) for step in kept.module.steps) == (name in OPTIONS)
        text = json.dumps(to_json(kept, PARTS))
        again = from_json(json.loads(text), PARTS)
        assert json.dumps(to_json(again, PARTS)) == text
        g = transformer.computation(graph, *inputs)
        g._calls[()] = transformer.make_call(Recalled(g.stages(), again, transformer.device))
        for n, c in ((3, 33), (9, 4)):
            given = data(n, c)[: len(inputs)]
            results = [each(*given) for each in (f, g)]
            listed = [each if isinstance(each, tuple) else (each,) for each in results]
            for a, b in zip(*listed, strict=True):
                assert a.tobytes() == b.tobytes()


class Recalled:
    """Stages of a computation whose program was read."""

    def __init__(self, stages, record, device):
        self.request, self.linking = stages.request, stages.linking
        self.stands_for = stages.stands_for
        self.compiled = CudaProgram(record, device)


def test_all_that_programs_are_made_of_can_be_kept():
    """A new kind of step or scratch memory is in the list of what records may hold."""
    kinds = [
        kind
        for module in (launch_ir, library_requests, scratch, sizes, device, library_dispatch)
        for kind in vars(module).values()
        if dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__
    ]
    assert launch_ir.Launch in kinds and scratch.Bytes in kinds
    assert [k for k in kinds if PARTS.get(k.__name__) != k.__module__] == []
