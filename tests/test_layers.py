"""Which part of geon may import which: errors <- op_graph <- transformers <- targets."""

import ast
from pathlib import Path

import pytest

import geon

ROOT = Path(geon.__file__).parent
TARGETS = sorted(
    folder.name
    for folder in (ROOT / "transformers").iterdir()
    if (folder / "transformer.py").exists()
)
# The folder of a module, outermost first, and what its modules may import besides each other.
# A trailing * stands for everything below.
ALLOWED = {
    "geon": ["geon*"],  # the public names, replay and the command line sit on everything
    "geon.errors": [],
    "geon.version": [],
    "geon.op_graph": ["geon.errors"],
    "geon.transformers": ["geon.errors", "geon.op_graph*", "geon.version"],
    "geon.frontends": ["geon.errors", "geon.op_graph*", "geon.transformers.base"],
    "geon.testing": ["geon*"],
}
for target in TARGETS:
    ALLOWED[f"geon.transformers.{target}"] = [
        "geon.errors",
        "geon.version",
        "geon.op_graph*",
        *(
            f"geon.transformers.{path.stem}"
            for path in (ROOT / "transformers").glob("*.py")
        ),
    ]  # fmt: skip


def module_name(path):
    """The dotted name of a file below ``geon``."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def group_of(module):
    """The longest key of ``ALLOWED`` that the module is, or lies below."""
    found = [key for key in ALLOWED if module == key or module.startswith(key + ".")]
    return max(found, key=len)


def imported(module):
    """The modules of geon that a module imports anywhere in its text, even inside functions."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "geon")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            if source.split(".")[0] == "geon":
                for alias in node.names:
                    inner = f"{source}.{alias.name}"
                    yield inner if inner in MODULES else source


def may(module, other):
    """Whether ``module`` may import ``other``."""
    group = group_of(module)
    if group_of(other) == group:
        return True
    return any(
        other == allowed or (allowed.endswith("*") and (other + ".").startswith(allowed[:-1]))
        for allowed in ALLOWED[group]
    )


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_only_what_is_below(module):
    wrong = sorted({other for other in imported(module) if not may(module, other)})
    assert not wrong, f"{module} imports {', '.join(wrong)}"


def test_the_rule_refuses_what_it_should():
    assert not may("geon.op_graph.deriv", "geon.transformers.base")
    assert not may("geon.transformers.memory", "geon.transformers.numpy.emit")
    assert not may("geon.frontends.base.axis", "geon.transformers.storage")
    assert not may("geon.errors", "geon.op_graph.axes")
    assert may("geon.transformers.numpy.emit", "geon.transformers.memory")


def cycles(graph):
    """The modules that import themselves through others."""

    def reached(start):
        seen, waiting = set(), list(graph[start])
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += graph[module]
        return seen

    return sorted(module for module in graph if module in reached(module))


def test_no_file_of_the_graph_imports_itself_through_others():
    inside = [module for module in MODULES if module.startswith("geon.op_graph.")]
    graph = {}
    for module in inside:
        tree = ast.parse(MODULES[module].read_text())
        top = {id(node) for node in top_level(tree)}
        late = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level and id(node) not in top
        ]
        typing = {
            id(node)
            for block in ast.walk(tree)
            if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
            for node in ast.walk(block)
        }
        assert not [node.lineno for node in late if id(node) not in typing], module
        imports = [node for node in top_level(tree) if isinstance(node, ast.ImportFrom)]
        names = {
            other
            for node in imports
            if node.level == 1
            for other in ([node.module] if node.module else [alias.name for alias in node.names])
        }
        graph[module] = {f"geon.op_graph.{name}" for name in names} & set(inside)
    assert cycles(graph) == []
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


def test_there_are_targets_and_modules():
    assert "numpy" in TARGETS
    assert {"geon", "geon.errors", "geon.op_graph.deriv"} <= MODULES.keys()


OPTIONAL = {"sympy", "mpmath", "ml_dtypes", "cachetools", "safetensors", "sklearn", "tqdm",
            "matplotlib", "scipy", "hypothesis", "pytest"}  # fmt: skip


@pytest.mark.parametrize("module", sorted(MODULES))
def test_other_packages_are_imported_where_they_are_used(module):
    if module.startswith("geon.testing"):
        return
    tree = ast.parse(MODULES[module].read_text())
    for node in top_level(tree):
        names = (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
        if isinstance(node, ast.ImportFrom) and node.level:
            continue
        eager = {name.split(".")[0] for name in names} & OPTIONAL
        assert not eager, f"{module} imports {', '.join(eager)} when it is imported"


def top_level(tree):
    """The imports that run when a module is imported."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
