"""External functions: a unit calls a routine of another library through a pointer set at load."""

import ctypes
import json
import sys

import numpy as np
import pytest

import geon
from geon.errors import UnavailableError
from geon.transformers.cache.serialization import from_json, to_json
from geon.transformers.native.emit.record import PARTS
from geon.transformers.native.names.c_files import FileFunction
from geon.transformers.native.names.dialect import PRELUDE
from geon.transformers.native.names.external_names import external_link, external_name
from geon.transformers.native.runtime import external_functions
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.toolchain.shared_objects import shared_object

FACTOR = """\
int factor(int n, double *x);
int factor(int n, double *x)
{
    int info = 0;
    ((void (*)(const char *, const int *, double *, const int *, int *))POTRF)("U", &n, x, &n,
                                                                               &info);
    return info;
}
"""


def test_a_unit_calls_a_routine_of_lapack():
    key = "lapack.dpotrf"
    text = FACTOR.replace("POTRF", external_name(key))
    (unit,) = FileFunction("factor", "", text, external=(key,)).units
    path = shared_object(find_toolchain(), [unit, PRELUDE + external_link([key], "_a")])
    library = ctypes.CDLL(str(path))
    address = external_functions.external_address(key)
    library.geon_link_external_a((ctypes.c_void_p * 1)(address))
    x = np.array([[4.0, 2.0], [2.0, 5.0]])
    assert library.factor(2, x.ctypes.data_as(ctypes.c_void_p)) == 0
    np.testing.assert_allclose(np.tril(x), [[2, 0], [1, 2]])


def test_a_missing_package_is_named_with_its_install_command(monkeypatch):
    monkeypatch.setattr(external_functions, "_known", {})
    monkeypatch.setitem(sys.modules, "scipy.linalg.cython_lapack", None)
    with pytest.raises(UnavailableError, match=r"LAPACK's dgetrf.*pip install scipy"):
        external_functions.external_address("lapack.dgetrf")


def solving():
    """A computation whose native program calls LAPACK and checks the result."""
    rows, columns, batch = geon.Axis("I"), geon.Axis("J"), geon.Axis("B")
    x = geon.placeholder([batch, rows, columns], "float64")
    result = geon.linalg.cholesky(x, [rows, columns])
    return geon.make_transformer("native").computation(result, x)


def test_the_record_of_a_program_keeps_its_keys_and_the_axes_of_its_checks():
    f = solving()
    f(np.eye(12)[None])
    kept = f.stages().compiled.record
    assert kept.external == ("lapack.dpotrf",)
    assert any(check and check[2][0][0] == "B" for check in kept.checks.values())
    again = from_json(json.loads(json.dumps(to_json(kept, PARTS))), PARTS)
    assert again == kept


def test_a_program_that_calls_lapack_is_not_written_as_c(tmp_path):
    with pytest.raises(UnavailableError, match=r"lapack.dpotrf.*only a Python process"):
        solving().write_c(tmp_path)
