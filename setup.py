"""The extensions by which calls enter compiled code and captured graphs; all else is in setup.cfg.

They are built where there are a C compiler and Python's headers. Without them geon is installed
whole, and calls take a longer way. With them comes what all products share, compiled for this
machine; elsewhere, or where that fails, the first program with a product compiles it.
"""

import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = "geon/transformers"
SOURCES = {"native._entry": "native/entry.c"}
if sys.platform == "linux":  # where the CUDA driver is
    SOURCES["pycuda._steady"] = "pycuda/steady.c"
SHARED = f"{FOLDER}/loading/extension.h"  # what they both include
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
    source = hashlib.sha256(Path(SHARED).read_bytes() + Path(file).read_bytes()).hexdigest()
    return Extension(
        f"{FOLDER.replace('/', '.')}.{name}",
        [file],
        include_dirs=[headers],
        define_macros=[("Py_LIMITED_API", hex(OLDEST)), ("GEON_SOURCE", f'"{source}"')],
        depends=["setup.py", SHARED],
        py_limited_api=True,
        optional=True,
    )


class BuildWithObjects(build_ext):
    """Builds the extensions, and the objects that products share beside them."""

    def run(self) -> None:
        super().run()
        entry = self.get_ext_fullpath(f"{FOLDER.replace('/', '.')}.native._entry")
        folder = Path(entry).absolute().with_name("prebuilt")
        with tempfile.TemporaryDirectory(prefix="geon-") as cache:
            path = os.pathsep.join(["."] + [p for p in sys.path if p])
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    f"{FOLDER.replace('/', '.')}.native.installing",
                    str(folder),
                ],
                env={**os.environ, "PYTHONPATH": path, "GEON_CACHE": cache},
                check=False,
            )


made = extensions()
setup(
    cmdclass={"build_ext": BuildWithObjects},
    ext_modules=made,
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if made else {},
)
