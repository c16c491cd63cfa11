"""The op reference, made from the registry rows and the signatures of the public functions.

MkDocs runs it as a hook of every build; ``python docs/generate_ops.py`` prints the page.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

    from geon.op_graph.registry import Primitive

HEAD = """# Ops

Made from the registry rows and the public functions when these pages are built. First the
primitives, by kind: an elementwise one is called as it is named, `geon.tanh(x)`, and the others are
built by a function of the second table. All take tensors, NumPy arrays and numbers. Where the
derivative is zero, it is zero by decision, as that of a rounding; a primitive that has none raises
`DerivativeError`.
"""


def sentence(doc: str | None) -> str:
    """The first paragraph of a docstring on one line, safe inside a table."""
    first = inspect.cleandoc(doc or "").split("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace("|", "\\|")


def table(heading: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown section with one table."""
    lines = [columns, ("---",) * len(columns), *rows]
    return f"## {heading}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def derivative(row: "Primitive") -> str:
    """What the table says of the derivative of a row."""
    if not row.differentiable:
        return ""
    return "zero" if row.partials and not any(row.partials) else "yes"


def primitives() -> list[str]:
    """One table for each kind of primitive, in the registry's order."""
    import geon  # noqa: F401  # the rows register themselves
    from geon.op_graph.registry import KINDS, PRIMITIVES

    sections = []
    for kind in KINDS:
        rows = [
            (f"`{row.name}`", sentence(row.doc), derivative(row))
            for row in PRIMITIVES.values()
            if row.kind == kind
        ]
        if rows:
            sections.append(table(kind.capitalize(), ("primitive", "gives", "derivative"), rows))
    return sections


def call(name: str, function: Callable[..., Any]) -> str:
    """A call as a person would write it, without annotations and defaults."""
    parameters = inspect.signature(function).parameters.values()
    names = [str(p).split(":")[0].split("=")[0] for p in parameters if p.name != "self"]
    return f"`{name}({', '.join(names)})`"


def functions() -> str:
    """A table of the public functions."""
    import geon

    found = {name: getattr(geon, name) for name in dir(geon)}
    rows = [
        (call(f"geon.{name}", value), sentence(value.__doc__))
        for name, value in sorted(found.items())
        if (inspect.isfunction(value) or value is geon.Window) and not name.startswith("_")
    ]
    return table("Functions", ("call", "gives"), rows)


def classes() -> list[str]:
    """A table of the public methods and properties of each class that a person uses."""
    import geon

    sections = []
    for name in ("Axis", "Axes", "Op", "Random", "Transformer", "NativeTransformer", "Computation"):
        cls = getattr(geon, name)
        rows = [
            (f"`{member}`" if isinstance(value, property) else call(member, value), doc)
            for owner in cls.__mro__
            for member, value in vars(owner).items()
            if isinstance(value, property) or inspect.isfunction(value)
            if not member.startswith("_") and (doc := sentence(value.__doc__))
        ]
        heading, members = table(name, ("member", "gives"), rows).split("\n", 1)
        sections.append(f"{heading}\n\n{sentence(cls.__doc__)}\n{members}")
    return sections


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([HEAD, *primitives(), functions(), *classes()])


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the page to the build."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "ops.md", content=page()))
    return files


if __name__ == "__main__":
    print(page(), end="")
