"""External functions: a unit calls a routine of another library through a pointer set at load."""

import ctypes
import sys

import numpy as np
import pytest

from geon.errors import UnavailableError
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
