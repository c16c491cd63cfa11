"""The op reference, made from the registry rows and the signatures of the public functions.

MkDocs runs it as a hook of every build; ``python docs/generate_ops.py`` prints the page.
"""

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

HEAD = """# Ops

Made from the registry rows when these pages are built. An op written `geon.name` takes tensors,
NumPy arrays and numbers; which axes its result has follows from [named axes](tour.md).
"""


def sentence(doc: str | None) -> str:
    """The first paragraph of a docstring on one line, safe inside a table."""
    first = inspect.cleandoc(doc or "").split("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace("|", "\\|")


def table(heading: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown section with one table."""
    lines = [columns, ("---",) * len(columns), *rows]
    return f"## {heading}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def primitives() -> list[str]:
    """One table for each kind of primitive, in the registry's order."""
    import geon  # noqa: F401  # the rows register themselves
    from geon.op_graph.registry import KINDS, PRIMITIVES

    sections = []
    for kind in KINDS:
        rows = [
            (f"`{row.name}`", sentence(row.doc), "yes" if row.differentiable else "")
            for row in PRIMITIVES.values()
            if row.kind == kind
        ]
        if rows:
            sections.append(table(kind.capitalize(), ("primitive", "gives", "derivative"), rows))
    return sections


def functions() -> str:
    """A table of the public functions that are made of primitives or build one."""
    import geon

    rows = []
    for name, value in sorted(vars(geon).items()):
        if inspect.isfunction(value) and value.__module__.startswith("geon.op_graph."):
            arguments = [str(p).split(":")[0] for p in inspect.signature(value).parameters.values()]
            rows.append((f"`geon.{name}({', '.join(arguments)})`", sentence(value.__doc__)))
    return table("Functions", ("call", "gives"), rows)


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([HEAD, *primitives(), functions()])


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the page to the build."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "ops.md", content=page()))
    return files


if __name__ == "__main__":
    print(page(), end="")
