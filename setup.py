"""The extensions by which calls enter compiled code and captured graphs; all else is in setup.cfg.

They are built where there are a C compiler and Python's headers. Without them geon is installed
whole, and calls take a longer way.
"""

import hashlib
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

FOLDER = "geon/transformers"
SOURCES = {"native._entry": "native/entry.c"}
if sys.platform == "linux":  # where the CUDA driver is
    SOURCES["pycuda._steady"] = "pycuda/steady.c"
OLDEST = 0x030B0000  # the stable ABI of Python 3.11, so one build serves every later version


def extensions() -> list[Extension]:
    """None without NumPy's headers, nor in an interpreter that has no stable ABI."""
    try:
        import numpy
    except ImportError:
        return []
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return []
    return [
        extension(name, f"{FOLDER}/{file}", numpy.get_include()) for name, file in SOURCES.items()
    ]


def extension(name: str, file: str, headers: str) -> Extension:
    """One of them, which knows the text that it was built of."""
    source = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return Extension(
        f"{FOLDER.replace('/', '.')}.{name}",
        [file],
        include_dirs=[headers],
        define_macros=[("Py_LIMITED_API", hex(OLDEST)), ("GEON_SOURCE", f'"{source}"')],
        depends=["setup.py"],
        py_limited_api=True,
        optional=True,
    )


made = extensions()
setup(ext_modules=made, options={"bdist_wheel": {"py_limited_api": "cp311"}} if made else {})
