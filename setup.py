"""The extension by which native calls enter compiled code; all else is in setup.cfg.

It is built where there are a C compiler and Python's headers. Without it geon is installed whole,
and native calls take a longer way.
"""

import hashlib
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

SOURCE = "geon/transformers/native/entry.c"
OLDEST = 0x030B0000  # the stable ABI of Python 3.11, so one build serves every later version


def extensions() -> list[Extension]:
    """None without NumPy's headers, nor in an interpreter that has no stable ABI."""
    try:
        import numpy
    except ImportError:
        return []
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return []
    source = hashlib.sha256(Path(SOURCE).read_bytes()).hexdigest()
    return [
        Extension(
            "geon.transformers.native._entry",
            [SOURCE],
            include_dirs=[numpy.get_include()],
            define_macros=[("Py_LIMITED_API", hex(OLDEST)), ("GEON_SOURCE", f'"{source}"')],
            depends=["setup.py"],
            py_limited_api=True,
            optional=True,
        )
    ]


made = extensions()
setup(ext_modules=made, options={"bdist_wheel": {"py_limited_api": "cp311"}} if made else {})
