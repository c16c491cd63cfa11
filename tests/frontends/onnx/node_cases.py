"""The node cases that ``onnx`` publishes for backends: loading, running, and those that fail."""

import importlib
import pkgutil
import warnings
from fnmatch import fnmatchcase

import numpy as np
import onnx.backend.test.case.node as cases
from onnx.backend.test.runner import Runner, _normalize_tensor

import geon
from geon.frontends.onnx import backend
from tests.frontends.onnx.failing_cases import FAILING, HALVES, NOISY, RANDOM

MODULES = sorted(m.name for m in pkgutil.walk_packages(cases.__path__, f"{cases.__name__}."))
NOISE = 1e-5  # of float32, of elements up to 100
HALVES_TOLERANCE = 2**-9  # two units in the last place of float16


def load(modules=MODULES):
    """The cases that these modules make, without expansions of functions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            importlib.import_module(name)
    return [case for case in cases._NodeTestCases if "_expanded" not in case.name]


def run(case, transformer):
    """Compute a case; an ``AssertionError`` if its results are others."""
    handle = backend.prepare(case.model, transformer=transformer)
    rtol = max(case.rtol, HALVES_TOLERANCE) if case.name in HALVES else case.rtol
    atol = NOISE if case.name in NOISY else case.atol
    for inputs, expected in case.data_sets:
        found = handle.run([_normalize_tensor(value) for value in inputs])
        expected = [_normalize_tensor(value) for value in expected]
        if case.name in RANDOM:
            assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in expected]
        else:
            for values, wanted in zip(found, expected, strict=True):  # of a sequence each tensor
                pair = ([wanted], [values]) if isinstance(values, np.ndarray) else (wanted, values)
                Runner.assert_similar_outputs(*pair, rtol, atol)


def complaint(case, transformer):
    """What is wrong with a case: it fails and is not listed, or the other way round."""
    operator = case.model.graph.node[0].op_type
    listed = [
        pattern
        for pattern in FAILING
        if pattern == operator or fnmatchcase(case.name, f"test_{pattern}")
    ]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            run(case, transformer)
        except geon.GeonError as error:
            return None if listed else f"{case.name}: {type(error).__name__}: {error}"
        except Exception as error:
            return f"{case.name}: {type(error).__name__}: {error}"
    return f"{case.name} passes, and is listed as {listed[0]!r}" if listed else None
