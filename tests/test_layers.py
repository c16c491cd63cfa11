"""Which part of geon may import which.

errors <- op_graph <- transformers <- targets, and runtime under all of transformers.
"""

import ast
import re
import sys
from collections import Counter
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

import geon
from geon.testing.cases import for_each

ROOT = Path(geon.__file__).parent
# Folders in the order in which they import: each imports those before it. A dot stands for the
# modules that are in no folder.
ORDER = {
    "geon.op_graph": """
        core axes values syntax . building rows special random transforms regions evaluation
        rewriting functions linalg autodiff draws text
    """,
    "geon.transformers": """
        sizes native.sizes runtime
        kernels.ir kernels.analysis kernels.nests kernels.products kernels.scans kernels.costs
        kernels loops
        lowering.facts lowering.rules lowering.fusion lowering.planning
        printing.scalars printing.elementary printing.nests printing.trees
        loading cache binding . labelled reports numpy
        native.names native.toolchain native.library native.machine native.runtime native.vectors
        native.trees native.products native.emit native.standalone native.reports
        native
        pycuda.launches pycuda.kernels pycuda.products pycuda.emit pycuda.runtime pycuda.reports
        pycuda
    """,
}
FIRST = {"geon.op_graph.names": "core"}  # of a documented path, below all other modules
PLACES = {root: {name: k for k, name in enumerate(text.split())} for root, text in ORDER.items()}
TARGETS = sorted(
    folder.name
    for folder in (ROOT / "transformers").iterdir()
    if (folder / "transformer.py").exists()
)
EVERYWHERE = ("geon.lazy_dataclasses",)  # what all modules may import
# The folder of a module, outermost first, and what its modules may import besides each other.
# A trailing * stands for everything below.
ALLOWED = {
    "geon": ["geon*"],  # the public names, replay and the command line sit on everything
    "geon.errors": [],
    "geon.lazy_dataclasses": [],
    "geon.version": [],
    "geon.op_graph": ["geon.errors"],
    "geon.transformers": [
        "geon.errors",
        "geon.op_graph*",
        "geon.version",
        "geon.transformers.kernels*",
        "geon.transformers.loops.show",  # ``explain`` shows trees
        "geon.transformers.lowering*",
        "geon.transformers.runtime*",
        "geon.transformers.sizes*",
    ],
    # What a call of a recalled program evaluates, which loads no stage.
    "geon.transformers.sizes": ["geon.op_graph.values.dtypes", "geon.op_graph.axes.lengths"],
    # Its text is part of written modules; these three need errors alone, as it does.
    "geon.transformers.runtime": [
        "geon.errors",
        "geon.op_graph.values.arrays",
        "geon.op_graph.values.labels",
        "geon.op_graph.values.tree",
    ],
    "geon.frontends": ["geon.errors", "geon.op_graph*", "geon.transformers.base"],
    # Importers of models build graphs with the public names.
    "geon.frontends.positional": [
        "geon",
        "geon.errors",
        "geon.op_graph*",
        "geon.transformers.base",
    ],
    "geon.frontends.onnx": [
        "geon",
        "geon.errors",
        "geon.op_graph*",
        "geon.transformers.base",
        "geon.transformers.runtime.files",  # checks of paths
        "geon.frontends.positional*",
        "geon.frontends.onnx.writing*",
    ],
    # An exporter is a target: lowering rules make what its table has of what it lacks.
    "geon.frontends.onnx.writing": [
        "geon.errors",
        "geon.frontends.onnx.tensors",  # the numbers of dtypes
        "geon.frontends.positional.elementwise",  # names of operators, which are read by this table
        "geon.version",
        "geon.op_graph*",
        "geon.transformers.base",
        "geon.transformers.computation",
        "geon.transformers.lowering.facts.target",
        "geon.transformers.lowering.rules.lowering_rules",
        "geon.transformers.lowering.rules.small_matrices",
        "geon",  # loops over columns of matrices, by the public names
        "geon.transformers.runtime.files",  # checks of paths
    ],
    **{
        f"geon.frontends.{name}": [
            "geon",
            "geon.errors",
            "geon.op_graph*",
            "geon.transformers.base",
            "geon.frontends.base*",
            "geon.frontends.positional*",
        ]
        for name in ("torch", "jax")
    },
    "geon.frontends.sympy": [
        "geon",
        "geon.errors",
        "geon.op_graph*",
        "geon.frontends.positional.elementwise",
    ],
    # Steppers share the rules of neon's optimisers.
    "geon.frontends.brainstorm": [
        "geon",
        "geon.errors",
        "geon.op_graph*",
        "geon.transformers.base",
        "geon.version",
        "geon.frontends.neon*",
    ],
    # Updates of parameters share the rules of neon's optimisers.
    "geon.frontends.program": [
        "geon",
        "geon.errors",
        "geon.op_graph*",
        "geon.transformers.base",
        "geon.transformers.runtime.checkpoint_file",
        "geon.transformers.runtime.files",
        "geon.frontends.neon*",
        "geon.frontends.positional*",
    ],
    # Graphs of commands plan one arena for their tensors; models are eager, with neon's rules.
    "geon.frontends.nnc": [
        "geon",
        "geon.errors",
        "geon.op_graph*",
        "geon.transformers.base",
        "geon.transformers.runtime.arena",
        "geon.transformers.runtime.checkpoint_file",
        "geon.eager*",
        "geon.frontends.base*",
        "geon.frontends.neon*",
        "geon.frontends.positional*",
    ],
    "geon.testing": ["geon*"],
    # Densities of the public functions, beside the draws of geon.Random and their checks.
    "geon.distributions": ["geon", "geon.errors", "geon.op_graph*"],
}
SHARED = [
    "geon.errors",
    "geon.version",
    "geon.op_graph*",
    *(f"geon.transformers.{path.stem}" for path in (ROOT / "transformers").glob("*.py")),
    *(
        f"geon.transformers.{name}*"
        for name in ("loading", "cache", "binding", "labelled", "reports")
    ),
]
# The way of a program: kernels are data, which lowering makes and printing writes.
BELOW = ["geon.errors", "geon.op_graph*", "geon.transformers.sizes*"]
ALLOWED["geon.transformers.kernels"] = BELOW
ALLOWED["geon.transformers.loops"] = [*BELOW, "geon.transformers.kernels*"]
ALLOWED["geon.transformers.lowering"] = [
    *BELOW,
    "geon.transformers.kernels*",
    "geon.transformers.loops*",
    "geon.transformers.runtime*",
]
ALLOWED["geon.transformers.printing"] = [
    *BELOW,
    "geon.transformers.kernels*",
    "geon.transformers.loops*",
]
for target in TARGETS:
    ALLOWED[f"geon.transformers.{target}"] = [
        *SHARED,
        "geon.transformers.kernels*",
        "geon.transformers.loops*",
        "geon.transformers.lowering*",
        "geon.transformers.printing*",
        "geon.transformers.runtime*",
        "geon.transformers.sizes*",
    ]


def module_name(path):
    """The dotted name of a file below ``geon``."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def group_of(module):
    """The longest key of ``ALLOWED`` that the module is, or lies below."""
    found = [key for key in ALLOWED if module == key or module.startswith(key + ".")]
    return max(found, key=len)


class Parsed(NamedTuple):
    """Parts of a module's syntax tree, which as a whole would take too much memory to keep.

    ``anywhere``, ``top`` and ``typed`` are import statements: all of them, those that run when the
    module is imported, and those for type checkers. ``calls`` import a module when it is first
    used. ``classes`` are the names of classes at the top.
    """

    anywhere: list[ast.Import | ast.ImportFrom]
    top: list[ast.Import | ast.ImportFrom]
    typed: list[ast.Import | ast.ImportFrom]
    calls: list[ast.Call]
    classes: list[str]


@cache
def parsed(module):
    """The parts of a module's syntax tree that rules are about."""
    tree = ast.parse(MODULES[module].read_text())
    nodes = list(ast.walk(tree))
    return Parsed(
        imports(nodes),
        list(top_level(tree)),
        imports(inner for node in nodes if is_for_types(node) for inner in ast.walk(node)),
        [
            node
            for node in nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("LaterModule", "later_target")
        ],
        [node.name for node in tree.body if isinstance(node, ast.ClassDef)],
    )


def imports(nodes):
    """The import statements among nodes."""
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def is_for_types(node):
    """Whether a statement is read by type checkers alone."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imported(module, which="anywhere"):
    """The modules of geon that a module imports: anywhere in its text, even inside functions."""
    is_package = MODULES[module].name == "__init__.py"
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in getattr(parsed(module), which):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "geon")
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            if source.split(".")[0] == "geon":
                for alias in node.names:
                    inner = f"{source}.{alias.name}"
                    yield inner if inner in MODULES else source


def loops(modules):
    """The modules that import each other in circles when they are loaded."""
    return circles({m: (set(imported(m, "top")) & modules) - {m} for m in modules})


def circles(edges):
    """What can be reached from itself."""
    inside = set(edges)
    while ends := {start for start in inside if not edges[start] & inside}:
        inside -= ends  # they reach nothing that reaches them
    found = set()
    for start in inside:
        reached, waiting = set(), [start]
        while waiting:
            new = edges[waiting.pop()] - reached
            reached |= new
            waiting += new
        if start in reached:
            found.add(start)
    return found


def may(module, other):
    """Whether ``module`` may import ``other``."""
    group = group_of(module)
    if group_of(other) == group:
        return True
    return any(
        other == allowed or (allowed.endswith("*") and (other + ".").startswith(allowed[:-1]))
        for allowed in (*ALLOWED[group], *EVERYWHERE)
    )


@for_each("module", sorted(MODULES))
def test_imports_only_what_is_below(module):
    wrong = sorted({other for other in imported(module) if not may(module, other)})
    assert not wrong, f"{module} imports {', '.join(wrong)}"


def test_the_rule_refuses_what_it_should():
    assert not may("geon.op_graph.autodiff.deriv", "geon.transformers.base")
    assert not may("geon.transformers.lowering.planning.plan", "geon.transformers.numpy.emit")
    assert not may("geon.frontends.base.axis", "geon.transformers.binding.variables")
    assert not may("geon.errors", "geon.op_graph.axes.axes")
    assert not may("geon.transformers.runtime.calls", "geon.op_graph.op_graph")
    assert not may("geon.transformers.runtime.calls", "geon.transformers.lowering.planning.plan")
    assert may("geon.transformers.lowering.planning.plan", "geon.transformers.runtime.arena")
    assert may("geon.transformers.native.runtime.bound_program", "geon.transformers.runtime.calls")
    assert may("geon.transformers.numpy.emit", "geon.transformers.lowering.planning.plan")


def test_no_files_import_each_other_in_circles():
    """Names of types alone, which nothing imports when it runs, may go round."""
    assert not loops(MODULES.keys() - {"geon"})
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == {"b", "c"}


# What ``transformers`` import from geon when they first use it, in a function or by
# ``LaterModule``: what a recalled program does not need, and what few need; the list may shrink.
LATER = {
    ("geon.transformers.base", "geon.transformers.labelled.labelled_results"),
    ("geon.transformers.base", "geon.transformers.runtime.checkpoint_selection"),
    ("geon.transformers.base", "geon.transformers.runtime.variable_store"),
    ("geon.transformers.compile", "geon.transformers.lowering.rules.complex_parts"),
    ("geon.transformers.compile", "geon.transformers.pipeline"),
    ("geon.transformers.computation", "geon.transformers.reports.explain"),
    ("geon.transformers.computation", "geon.transformers.reports.call_errors"),
    ("geon.transformers.computation", "geon.transformers.reports.dump_and_peak"),
    ("geon.transformers.computation", "geon.transformers.reports.trace"),
    (
        "geon.transformers.native.runtime.bound_program",
        "geon.transformers.native.runtime.external_functions",
    ),
    ("geon.transformers.native.transformer", "geon.transformers.native.emit.compiler"),
    ("geon.transformers.native.transformer", "geon.transformers.native.target"),
    ("geon.transformers.binding.coordinate_origins", "geon.op_graph.evaluation.axis_provenance"),
    ("geon.transformers.pipeline", "geon.transformers.lowering.planning.plan_verifier"),
    ("geon.transformers.reports.dump_and_peak", "geon.op_graph.text.display"),
    (
        "geon.transformers.printing.scalars.helpers",
        "geon.transformers.printing.elementary.definitions",
    ),
    ("geon.transformers.numpy.transformer", "geon.transformers.numpy.standalone_module"),
    ("geon.transformers.native.transformer", "geon.transformers.native.reports.c_function"),
    ("geon.transformers.native.transformer", "geon.transformers.native.reports.profile"),
    ("geon.transformers.native.transformer", "geon.transformers.reports.profiled_calls"),
    ("geon.transformers.native.transformer", "geon.transformers.native.runtime.sanitizing"),
    (
        "geon.transformers.native.runtime.bound_program",
        "geon.transformers.reports.kernel_failures",
    ),
    (
        "geon.transformers.native.transformer",
        "geon.transformers.native.standalone.written_program",
    ),
}


def test_what_is_imported_is_imported_at_the_top():
    found = {
        (module, other)
        for module in MODULES
        if module.startswith("geon.transformers")
        for other in set(imported(module)) - set(imported(module, "top")) - typed(module)
    }
    assert found | {edge for module in MODULES for edge in by_later(module)} == LATER


def by_later(module):
    """The modules that a module imports by ``LaterModule`` or ``later_target``, as edges.

    Those of ``LaterModule`` are imported for type checkers too, so that the rules above see them.
    """
    package = module.rpartition(".")[0]
    for node in parsed(module).calls:
        if node.func.id == "LaterModule":
            other = resolve_name(node.args[0].value, package)
            assert other in typed(module), f"{module} says {other} to no type checker"
            yield module, other
        else:
            yield module, f"{package}{node.args[0].values[-1].value}"


# Stages 3 to 6, and what people ask of a program.
STAGES = tuple(
    f"geon.transformers.{name}"
    for name in """
        lowering kernels printing pipeline reports labelled native.target native.emit.compiler
        native.names.naming native.library native.trees native.vectors native.products
    """.split()
)


def test_what_calls_a_recalled_program_imports_no_stage():
    """Nothing that the native transformer and the parts of its records import, does."""
    sizes = [m for m in MODULES if ".sizes" in m]
    assert len(sizes) > 10
    waiting = ["geon", "geon.transformers.native.transformer", *sizes]
    reached = set(waiting)
    while waiting:
        new = set(imported(waiting.pop(), "top")) & MODULES.keys() - reached
        reached |= new
        waiting += new
    assert "geon.transformers.native.runtime.bound_program" in reached
    assert not [m for m in reached if (m + ".").startswith(tuple(f"{s}." for s in STAGES))]


@pytest.mark.parametrize(
    "module", sorted(m for m in MODULES if m.startswith("geon.transformers.runtime"))
)
def test_what_a_call_needs_is_numpy_and_the_standard_library(module):
    others = {name.split(".")[0] for name in eager(module)} - {"geon", ""}
    assert others <= {"numpy"} | set(sys.stdlib_module_names)
    for inner in ("arrays", "tree"):
        assert set(imported(f"geon.op_graph.values.{inner}")) <= {"geon.errors"}
    assert set(imported("geon.op_graph.values.labels")) <= {
        "geon.errors",
        "geon.op_graph.values.arrays",
    }


def test_no_file_of_the_graph_imports_another_in_a_function():
    inside = [module for module in MODULES if module.startswith("geon.op_graph.")]
    for module in inside:
        late = set(imported(module)) - set(imported(module, "top")) - typed(module)
        assert not late, module


def typed(module):
    """The modules that a module imports for the names of types alone."""
    return set(imported(module, "typed"))


def place_of(module):
    """The package of ``ORDER`` that a module is in and the place of its folder; None for others."""
    for root, places in PLACES.items():
        if module.startswith(root + ".") and module != root:
            folder = module[len(root) + 1 :].rpartition(".")[0] or FIRST.get(module, ".")
            return (root, places[folder]) if folder in places else None
    return None


def misplaced(edges):
    """The imports inside a package of ``ORDER`` that go from an earlier folder to a later one."""
    inside = [
        (module, other, place_of(module), place_of(other))
        for module, others in edges.items()
        for other in others
    ]
    return {
        (module, other)
        for module, other, here, there in inside
        if here and there and here[0] == there[0] and there[1] > here[1]
    }


def test_folders_import_those_before_them():
    """What is imported when it is first used, or for names of types alone, may be later."""
    files = {m: path for m, path in MODULES.items() if path.name != "__init__.py"}
    used = {place_of(module) for module in files} - {None}
    assert len(used) == sum(map(len, PLACES.values()))
    assert not misplaced({module: set(imported(module, "top")) for module in files})
    assert misplaced({"geon.op_graph.axes.axes": ["geon.op_graph.op_graph"]})
    assert misplaced({"geon.op_graph.rows.leaves": ["geon.op_graph.regions.scan"]})
    assert misplaced({"geon.op_graph.nodes": ["geon.op_graph.rows.leaves"]})
    assert misplaced(
        {"geon.transformers.kernels.ir.nest": ["geon.transformers.kernels.kernel_lowering"]}
    )


def test_a_folder_has_at_most_twenty_files():
    kinds = (".py", ".c", ".h", ".cuh", ".hpp", ".cpp")
    counts = Counter(path.parent for path in ROOT.rglob("*") if path.suffix in kinds)
    too_many = {str(folder.relative_to(ROOT)): n for folder, n in counts.items() if n > 20}
    assert too_many == {}


# Families of distributions with the names that statistics has, as neon's schedule and initialiser.
NAMES_OF_THE_FIELD = {"Exponential", "Uniform"}


# Frontends whose classes have the names of the systems that they are for.
NAMED_BY_OTHERS = ("geon.frontends.brainstorm", "geon.frontends.nnc", "geon.frontends.program")


def test_the_map_of_the_source_names_every_folder():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`([\w./]+)`", text))
    folders = [path.name for path in ROOT.glob("*/*/") if (path / "__init__.py").exists()]
    folders += [path.name for path in ROOT.glob("*/") if (path / "__init__.py").exists()]
    assert sorted(set(folders) - named - {f.split("/")[-1] for f in named}) == []


def test_no_two_classes_share_a_name():
    """Private classes count too; frontends named by other systems have names of their own."""
    found = Counter(
        (group_of(module) if group_of(module) in NAMED_BY_OTHERS else "", name.lstrip("_"))
        for module in MODULES
        for name in parsed(module).classes
    )
    assert {name for (_, name), count in found.items() if count > 1} == NAMES_OF_THE_FIELD


def test_there_are_targets_and_modules():
    assert "numpy" in TARGETS
    assert {"geon", "geon.errors", "geon.op_graph.autodiff.deriv"} <= MODULES.keys()


OPTIONAL = {"sympy", "mpmath", "ml_dtypes", "cachetools", "safetensors", "sklearn", "tqdm",
            "matplotlib", "scipy", "hypothesis", "pytest", "h5py", "tensorboardX",
            "torch", "jax"}  # fmt: skip


@for_each("module", sorted(MODULES))
def test_other_packages_are_imported_where_they_are_used(module):
    """A frontend of a package, which is imported when somebody asks for it, imports the package."""
    if module.startswith("geon.testing"):
        return
    own = module.split(".")[2] if module.startswith("geon.frontends.") else ""
    found = {name.split(".")[0] for name in eager(module)} & OPTIONAL - {own}
    assert not found, f"{module} imports {', '.join(found)} when it is imported"


def eager(module):
    """The names that a module imports, absolutely, when it is imported."""
    for node in parsed(module).top:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif not node.level:
            yield node.module or ""


def top_level(tree):
    """The imports that run when a module is imported."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif is_for_types(node):
            continue
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


# What these read is written by hand: tables and definitions, before anything is made of them.
READERS_OF_HAND_WRITTEN_TEXT = {
    "numpy/table.py": "the operands of a row's statements",
    "printing/elementary/polynomials.py": "marks in templates of C, and names of functions",
    "printing/scalars/helpers.py": "which helpers the C of a helper calls",
    "native/names/c_files.py": "macros that C files define",
    "native/standalone/interface.py": "the names that users give",
}
# The names that emitted Python uses, where a long program is cut into functions.
READER_OF_EMITTED_TEXT = {
    "numpy/split_functions.py",
    "native/emit/one_file.py",
    "native/standalone/source.py",  # which names of geon's C a written program renames
}


def test_nothing_reads_the_text_of_kernels():
    found = {
        str(path.relative_to(ROOT / "transformers"))
        for module, path in MODULES.items()
        if path.is_relative_to(ROOT / "transformers")
        for node in parsed(module).anywhere
        if isinstance(node, ast.Import) and "re" in [alias.name for alias in node.names]
    }
    assert found == READERS_OF_HAND_WRITTEN_TEXT.keys() | READER_OF_EMITTED_TEXT


# What C for gcc and clang has, and other languages of the family have not.
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
OF_ONE_COMPILER = ("#pragma", "__builtin", "__attribute__", "__asm__", "lane", "omp ")


def test_printing_writes_nothing_of_one_language_or_compiler():
    """Loops over lanes, pragmas and builtins are native's, which passes a dialect in."""
    for path in (ROOT / "transformers" / "printing").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        texts = [n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is str]
        docs = [ast.get_docstring(n, clean=False) for n in nodes if isinstance(n, DOCUMENTED)]
        found = [t for t in texts if t not in docs and any(w in t for w in OF_ONE_COMPILER)]
        assert not found, (path, found)
