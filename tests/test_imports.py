"""``import geon`` is cheap and quiet, and the package says what it is."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

LOADED = """
import sys
import numpy
before = set(sys.modules)
import geon
print("\\n".join(sorted(name.partition(".")[0] for name in set(sys.modules) - before)))
"""
LAZY = (
    *("sympy", "mpmath", "cachetools", "safetensors", "ml_dtypes", "matplotlib", "scipy", "tqdm"),
    *("hashlib", "difflib"),  # OpenSSL, and what only messages need
    *("fractions", "decimal"),
)


def loaded(program: str) -> set[str]:
    """The top-level packages that a program in another process says it loaded."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return set(done.stdout.split())


def test_import_geon_loads_numpy_and_the_standard_library_alone() -> None:
    found = loaded(LOADED) - {"geon"}
    assert found <= set(sys.stdlib_module_names) | {"numpy"}
    assert not found & set(LAZY)


def test_building_and_deriving_load_nothing_more() -> None:
    program = LOADED.replace(
        "import geon\n",
        "import geon\n"
        "N = geon.Axis('N')\n"
        "x = geon.placeholder(N)\n"
        "y = geon.deriv(geon.sum(geon.tanh(x[1:]) * 2), x)\n",
    )
    assert not loaded(program) & set(LAZY)


# The modules of geon beyond the graph that a call of a program from the disk cache loads. What is
# new here is loaded by every process that calls anything: import it where it is used, or list it.
OF_A_CALL = {
    "transformers": "base compile computation linking request",
    "transformers.binding": "call_values complex_calls coordinate_origins entry_values futures"
    " memory_option open_lengths result_tree variables",
    "transformers.cache": "disk programs serialization",
    "transformers.loading": "c_extensions compiling environment lazy_loading progress registry",
    "transformers.native": "sizes transformer",
    "transformers.native.emit": "record",
    "transformers.native.machine": "caches roofline_peaks threads",
    "transformers.native.names": "c_texts",
    "transformers.native.runtime": "bound_program fast_call flushing result_pool",
    "transformers.native.sizes": "products",
    "transformers.native.toolchain": "compilers flags prebuilt shared_objects translation_units",
    "transformers.runtime": "arena arguments calls complex_arrays dims feeding loop_steps memory"
    " out_arrays rwlock state value_errors variable_slot",
    "transformers.sizes": "blocks budget buffers ceilings limits product_blocks product_cut"
    " product_plan product_problem scratch spaces",
}
# Modules of the graph: nearly all are rows, which `import geon` loads.
MOST_OF_THE_GRAPH = 120
STAGES = (
    *("lowering", "kernels", "printing", "pipeline", "native.emit.compiler", "native.target"),
    *("native.trees", "native.vectors", "native.products", "native.library"),
)
SMALL = """
import sys
import numpy as np
import geon
N, C, H = geon.Axis("N"), geon.Axis("C", 4), geon.Axis("H", 3)
x = geon.placeholder([N, C])
w = geon.Variable([C, H], initial_value=0.1, name="w")
with geon.make_transformer("native", threads=2) as transformer:
    transformer.computation(geon.mean(geon.tanh(geon.dot(x, w))), x)(np.ones((5, 4)))
print(*sys.modules)
"""
STEP = """
import sys
import numpy as np
import geon
from geon.frontends import neon
N, C, H = geon.Axis("N"), geon.Axis("C", 4), geon.Axis("H", 3)
x, y = geon.placeholder([N, C]), geon.placeholder([N, H])
w = geon.Variable([C, H], initial_value=0.1, name="w")
loss = geon.mean(geon.square(geon.dot(x, w) - y))
step = neon.Adam(0.01)(loss)
with geon.make_transformer("native", threads=2) as transformer:
    transformer.computation([loss, step], x, y)(np.ones((5, 4)), np.ones((5, 3)))
print(*sys.modules)
"""


def loaded_when_cached(program: str, cache: Path) -> tuple[set[str], set[str]]:
    """The modules, and those of geon, that a program loads which another process has compiled."""
    environment = {**os.environ, "GEON_CACHE": str(cache), "GEON_DEBUG": ""}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
    every = set(done.stdout.split())
    return every, {name for name in every if name.partition(".")[0] == "geon"}


@pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
def test_a_call_of_a_cached_program_loads_no_stage(tmp_path: Path) -> None:
    every, found = loaded_when_cached(SMALL, tmp_path)
    own = "errors fft lazy_dataclasses linalg transformers.native version"
    expected = {"geon"} | {f"geon.{name}" for name in (*own.split(), *OF_A_CALL)}
    for package, names in OF_A_CALL.items():
        expected |= {f"geon.{package}.{name}" for name in names.split()}
    graph = {name for name in found if name.startswith("geon.op_graph")}
    assert found - graph == expected
    assert len(graph) <= MOST_OF_THE_GRAPH
    assert not every & (set(LAZY) - {"cachetools", "hashlib"})


@pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
def test_a_cached_step_of_training_loads_no_stage(tmp_path: Path) -> None:
    every, found = loaded_when_cached(STEP, tmp_path)
    stages = tuple(f"geon.transformers.{stage}" for stage in STAGES)
    assert not [name for name in found if name.startswith(stages)]
    by_neon = {"fractions", "decimal"}  # capacities of experts
    assert not every & (set(LAZY) - {"cachetools", "hashlib"} - by_neon)


def test_a_tensor_is_shown_in_a_notebook_that_has_shown_nothing_else() -> None:
    program = "import geon; print(geon.iota(geon.Axis('N', 3))._repr_html_())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "iota" in done.stdout, done.stderr


def test_logging_is_quiet_unless_asked_for() -> None:
    logger = logging.getLogger("geon")
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)


def test_the_package_is_typed() -> None:
    assert (Path(geon.__file__).parent / "py.typed").is_file()


def test_the_version() -> None:
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?(\.?(a|b|rc|dev)\d+)?", geon.__version__)
    root = Path(__file__).parent.parent
    assert "geon.version.__version__" in (root / "setup.cfg").read_text()
    assert geon.__version__ in (root / "CHANGELOG.md").read_text()
