"""How kernels are divided among units, and what of them is compiled once for a machine."""

import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

import geon
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.loading import compiling
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import function_of, make_module
from geon.transformers.native.emit.unit_texts import small_functions
from geon.transformers.native.library.library_kernels import library_text
from geon.transformers.native.products.product_text import product_units
from geon.transformers.native.toolchain import shared_objects, translation_units
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.toolchain.flags import OF_VECTORS
from geon.transformers.native.toolchain.translation_units import (
    MAX_UNIT_CHARACTERS,
    MIN_UNIT_CHARACTERS,
    divide_units,
)
from geon.transformers.sizes.product_blocks import half_vector_shape, shape
from tests.golden.chunks import top_level
from tests.golden.emitting import VECTOR_BYTES, native
from tests.golden.programs import PROGRAMS
from tests.native.test_library import kernels
from tests.transformers.c_text import mentioned


@pytest.mark.parametrize("cores", [1, 2, 3, 16])
@pytest.mark.parametrize("costs", [[], [5], [9_000, 1_000, 9_000], [3_000] * 40, [90_000] * 8])
def test_each_kernel_is_in_one_unit(costs, cores):
    found = divide_units(costs, 500, cores)
    assert sorted(number for unit in found for number in unit) == list(range(len(costs)))
    assert all(unit == sorted(unit) for unit in found)


def test_as_many_units_as_cores_of_about_the_same_cost():
    costs = [3_000, 14_000, 2_500, 9_000, 6_000, 11_000, 2_500]
    for cores in (1, 2, 3):
        found = divide_units(costs, 1_000, cores)
        loads = [sum(costs[number] for number in unit) for unit in found]
        loads[0] += 1_000
        assert len(found) == cores
        assert max(loads) - min(loads) < min(costs) + 1_000, loads


def test_the_first_unit_has_less_where_it_has_more_besides():
    first, second = divide_units([4_000] * 10, 20_000, 2)
    assert (len(first), len(second)) == (3, 7)


def test_little_work_is_one_unit_and_of_much_the_last_are_short():
    assert len(divide_units([MIN_UNIT_CHARACTERS // 4] * 3, 100, 8)) == 1
    assert len(divide_units([MIN_UNIT_CHARACTERS // 2] * 8, 100, 16)) == 4
    assert len(divide_units([MIN_UNIT_CHARACTERS] * 72, 100, 1)) == 1
    loads = [
        MIN_UNIT_CHARACTERS * len(unit) for unit in divide_units([MIN_UNIT_CHARACTERS] * 72, 100, 2)
    ]
    assert sum(loads) == 6 * MAX_UNIT_CHARACTERS
    assert loads[:3] == [MAX_UNIT_CHARACTERS] * 3 and max(loads[-4:]) <= 4 * MIN_UNIT_CHARACTERS
    assert all(
        load <= max(4 * MIN_UNIT_CHARACTERS, sum(loads[n:]) / 2) for n, load in enumerate(loads)
    )


def test_units_for_two_processors_have_what_one_unit_has():
    f = native("mlp_step")

    def module(cores):
        return make_module(
            for_vectors(f.plan, VECTOR_BYTES), f.linking, annotate=False, cores=cores
        )

    alone, two = module(1), module(2)
    assert (len(alone.units), len(two.units)) == (2, 3)
    assert [unit.startswith(OF_VECTORS) for unit in two.units] == [True, False, False]
    assert alone.shared == two.shared == product_units(shape("float", VECTOR_BYTES))

    def kernels(module):
        """The definitions of kernels' functions, as they are without what other units can see."""
        texts = [text for unit in module.units for text in top_level(unit) if "{" in text]
        return {text.removeprefix("static ") for text in texts if " kernel_" in text}

    assert kernels(alone) - kernels(two) == set()
    costs = sorted(map(shared_objects.cost_of, two.units))
    assert costs[-1] < 2 * costs[0]


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
def test_units_are_begun_while_others_are_printed(monkeypatch, cores):
    """As many as there are processors, none on one, each as it will be, whoever begins them."""
    monkeypatch.setattr(
        "geon.transformers.native.toolchain.translation_units.MIN_UNIT_CHARACTERS", 1_000
    )
    monkeypatch.setattr(
        "geon.transformers.native.toolchain.translation_units.MAX_UNIT_CHARACTERS", 2_000 * cores
    )
    inputs = [geon.placeholder([geon.Axis(f"A{n}", n + 2)]) for n in range(40)]
    f = geon.make_transformer("native").computation([geon.exp(x) * 3 for x in inputs], *inputs)
    ready = []

    def module(cores, ready):
        return make_module(
            for_vectors(f.plan, VECTOR_BYTES), f.linking, False, cores=cores, ready=ready
        )

    made = module(cores, ready.append)
    assert len(ready) == (cores if cores > 1 else 0)
    assert list(made.units[1 : len(ready) + 1]) == ready
    assert not any("geon_run" in unit for unit in ready)
    assert module(cores, lambda unit: None).units == made.units
    assert defined(made) == defined(module(1, pytest.fail)) and len(defined(made)) == 40


def test_a_unit_that_is_most_of_a_program_is_not_begun_before_the_rest():
    for waiting, printed, expected, cores, begun in [
        (
            MAX_UNIT_CHARACTERS // 2 - 1,
            MAX_UNIT_CHARACTERS // 2 - 1,
            9 * MAX_UNIT_CHARACTERS,
            2,
            False,
        ),
        (MAX_UNIT_CHARACTERS // 2, MAX_UNIT_CHARACTERS // 2, 9 * MAX_UNIT_CHARACTERS, 2, True),
        (MAX_UNIT_CHARACTERS // 2, MAX_UNIT_CHARACTERS, 2 * MAX_UNIT_CHARACTERS, 2, True),
        (MAX_UNIT_CHARACTERS // 2, MAX_UNIT_CHARACTERS, 2 * MAX_UNIT_CHARACTERS - 1, 2, False),
        (2 * MIN_UNIT_CHARACTERS - 1, MAX_UNIT_CHARACTERS, 99 * MAX_UNIT_CHARACTERS, 64, False),
        (2 * MIN_UNIT_CHARACTERS, MAX_UNIT_CHARACTERS, 99 * MAX_UNIT_CHARACTERS, 64, True),
    ]:
        assert translation_units.is_unit_ready(waiting, printed, expected, cores) == begun
    for waiting, expected, begun in [
        (2 * MIN_UNIT_CHARACTERS - 1, 9 * MAX_UNIT_CHARACTERS, False),
        (2 * MIN_UNIT_CHARACTERS, 9 * MAX_UNIT_CHARACTERS, True),
        (2 * MIN_UNIT_CHARACTERS, 6 * MIN_UNIT_CHARACTERS - 1, False),
    ]:
        assert translation_units.is_unit_ready(waiting, waiting, expected, 2, first=True) == begun


def defined(module):
    """The names of the functions of kernels that units define, each once."""
    found = re.findall(r"^(?:static )?void (kernel_\d+)\(.*\)\s*\{", module.source, re.MULTILINE)
    assert len(found) == len(set(found))
    return set(found)


def test_notes_and_measurements_divide_kernels_no_other_way():
    f = native("mlp_step")
    plain, noted, timed = (
        make_module(for_vectors(f.plan, VECTOR_BYTES), f.linking, annotate, timed=timed, cores=3)
        for annotate, timed in ((False, False), (True, False), (False, True))
    )
    assert len(plain.units) == 4  # that of vectors, and one for each core
    assert plain.units[1:] == noted.units[1:] == timed.units[1:]


def test_the_longest_text_is_begun_first(monkeypatch, tmp_path):
    from geon.transformers.native.toolchain import shared_objects

    begun = []
    compile_one = shared_objects._compile
    monkeypatch.setattr(
        shared_objects, "_compile", lambda *args: (begun.append(args[1]), compile_one(*args))[1]
    )
    monkeypatch.setattr(compiling, "available", lambda: 1)
    monkeypatch.setenv("GEON_CACHE", str(tmp_path / "cache"))
    toolchain = find_toolchain()
    if toolchain is None:
        pytest.skip("there is no C compiler")
    texts = [f"int f{n}(void); int f{n}(void) {{ return {n}; }} /* {'x' * n} */" for n in (1, 9, 5)]
    shared_objects.shared_object(toolchain, texts)
    assert begun == [texts[1], texts[2], texts[0]]


PROGRAM = """
import os, pathlib, sys, threading
import numpy as np
import geon
from geon.transformers.cache import disk as disk_cache
from geon.transformers.native.toolchain import prebuilt
from geon.transformers.native.toolchain import shared_objects as objects
from geon.transformers.native.emit.module_text import function_of, make_module
from geon.transformers.native.library.library_kernels import library_text
from geon.transformers.native.machine.threads import load_pool, processors

def made(start):
    return len(list(disk_cache.folder().glob(start + "*.so")))

def module(f):
    return make_module(f.plan, f.linking, annotate=False, cores=processors())

def product(function):
    M, K, N = geon.Axis("M", 4), geon.Axis("K", 5), geon.Axis("N", 6)
    x, w = geon.placeholder([M, K]), geon.placeholder([K, N])
    f = transformer.computation(function(geon.dot(x, w)), x, w)
    before = objects.compiled
    f(np.ones((4, 5)), np.ones((5, 6)))
    return f, objects.compiled - before, module(f)

prebuilt.FOLDER = pathlib.Path(os.environ["PREBUILT"])
transformer = geon.make_transformer("native")
load_pool()  # begun when the transformer was made
"""


def outcome(program, cache, prebuilt="nothing"):
    """What a program prints in a process with this cache folder, and these objects beside it."""
    if find_toolchain() is None:
        pytest.skip("there is no C compiler")
    run = [sys.executable, "-c", PROGRAM + textwrap.dedent(program)]
    environment = {**os.environ, "GEON_CACHE": str(cache), "PREBUILT": str(prebuilt)}
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_program_of_a_machine_compiles_its_own_units_alone(tmp_path):
    """The pool and the functions of products come from the cache, in any process."""
    first = """
    f, count, made_of = product(geon.tanh)
    print(count - len(made_of.units), len(made_of.shared), made("libgeon_pool"))
    f, count, made_of = product(geon.exp)
    print(count - len(made_of.units), len(made_of.shared), made("libgeon_pool"))
    """
    assert outcome(first, tmp_path / "cache") == "2 2 1\n0 2 1\n"
    other = """
    f, count, made_of = product(geon.sin)
    print(count, len(made_of.units), objects.compiled)
    """
    assert outcome(other, tmp_path / "cache") == "1 1 1\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with what is compiled when geon is installed."""
    if find_toolchain() is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("installed") / "prebuilt"
    folder.mkdir()
    (folder / "of before.o").touch()
    run = [sys.executable, "-m", "geon.transformers.native.installing", str(folder)]
    environment = {**os.environ, "GEON_CACHE": str(folder.with_name("cache"))}
    subprocess.run(run, env=environment, check=True)
    return folder


FIRST = """
f, count, made_of = product(geon.tanh)
print(count - len(made_of.units), len(made_of.shared))
"""


@pytest.mark.slow
def test_what_products_share_is_compiled_at_installation(installed, tmp_path):
    """A machine's first program compiles its own units alone, in both types."""
    narrow = half_vector_shape(shape("float", find_toolchain().vector_bytes))
    # Those of both types, of narrow float32 products, and what adds to rows.
    assert len(list(installed.glob("*.o"))) == 4 + (0 if narrow is None else 2) + 2
    double = FIRST.replace("product(geon.tanh)", "product(lambda x: geon.cast(x, 'float64'))")
    for number, program in enumerate((FIRST, double)):
        assert outcome(program, tmp_path / str(number), installed) == "0 2\n"
        assert outcome(program, tmp_path / f"{number} alone") == "2 2\n"


def test_an_installation_knows_the_compiler_and_has_the_pool(installed, tmp_path):
    """A machine's first process asks the compiler nothing, and compiles no pool."""
    program = """
    known = len(list(disk_cache.folder().glob("toolchain-*")))
    print(known, objects.compiled, made("libgeon_pool"), load_pool().path.parent.name)
    """
    assert outcome(program, tmp_path / "alone") == "1 1 1 alone\n"
    assert outcome(program, tmp_path / "cache", installed) == "0 0 0 prebuilt\n"


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "changed", "renamed", "folder", "empty"])
def test_a_damaged_object_of_the_installation_is_compiled_again(installed, tmp_path, damage):
    folder = tmp_path / "prebuilt"
    shutil.copytree(installed, folder)
    paths = sorted(folder.iterdir())
    for path, other in zip(paths, paths[1:] + paths[:1], strict=True):
        content = path.read_bytes()
        match damage:
            case "cut":
                path.write_bytes(content[:-1])
            case "changed":
                path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
            case "renamed":
                path.write_bytes((installed / other.name).read_bytes())
            case "folder":
                path.unlink()
                path.mkdir()
            case "empty":
                path.write_bytes(b"")
    assert outcome(FIRST, tmp_path / "cache", folder) == "2 2\n"


def test_installing_without_a_compiler_makes_nothing(tmp_path):
    folder = tmp_path / "prebuilt"
    run = [sys.executable, "-c", """
import pathlib, sys
from geon.transformers.native import installing
installing.find_toolchain = lambda: None
installing.install(pathlib.Path(sys.argv[1]))
""", str(folder)]  # fmt: skip
    subprocess.run(run, check=True)
    assert not folder.exists()


def test_a_kernel_of_the_library_is_compiled_once_for_all_programs(tmp_path):
    program = """
    def argsort(text):
        x = geon.placeholder(geon.Axis("N", 9))
        f = transformer.computation(geon.argsort(eval(text), "N"), x)
        before = objects.compiled
        f(np.arange(9))
        print(objects.compiled - before, len(module(f).shared))

    argsort("x * x")
    argsort("geon.exp(x) - x")
    """
    assert outcome(program, tmp_path / "cache") == "2 1\n1 1\n"


def test_calls_after_the_first_compile_nothing(tmp_path):
    """The short way of calls was built with geon: no call gives a compiler anything for it."""
    program = """
    f, count, made_of = product(geon.tanh)
    before = objects.compiled
    for _ in range(3):
        f(np.ones((4, 5)), np.ones((5, 6)))
    print(objects.compiled - before, [t.name for t in threading.enumerate() if "geon" in t.name])
    """
    assert outcome(program, tmp_path / "cache") == "0 []\n"


def test_a_kernel_costs_more_than_its_text():
    assert translation_units.cost("x" * 100) == 100 + translation_units.KERNEL_COST_CHARACTERS


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_says_what_its_text_calls_and_how_it_begins(name):
    f = native(name)
    for kernel in f.plan.schedule.kernels:
        if kernel.op.primitive.name == "print":
            continue
        made = function_of(for_vectors(f.plan, VECTOR_BYTES), kernel)
        own = made.text + "".join(made.shared)
        uses = {each: f"{each}(" for each in small_functions()} | {"geon_vectors": "GEON_AT("}
        uses["geon_narrow_vectors"] = "_widened("
        called = {*mentioned(own), *(each for each, use in uses.items() if use in own)}
        if "GEON_PUT(" in own:  # a vector that may pass by the caches
            called |= {"geon_vectors", "geon_past_put"}
        if isinstance(kernel.work, Nest):  # whether or not it is divided
            called.add("geon_grain")
        assert set(made.calls) == called
        assert made.text.count(f"static {made.head}") == 1


def test_units_of_the_library_have_the_helpers_that_they_call():
    for row, dtypes in kernels():
        made = library_text(row, dtypes)
        assert set(made.calls) == set(mentioned(made.definition or made.header)), (row, dtypes)
