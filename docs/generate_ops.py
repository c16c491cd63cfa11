"""The reference, made from registry rows, docstrings, signatures and the examples.

``docs/ops.md`` is the list, and ``docs/ops`` has a page for every public function and class of
geon, of its layers and of its functions of labelled arrays. They are not in the repository: ``make
docs`` makes them, by the hooks ``on_pre_build`` and ``on_config`` of MkDocs, and ``python
docs/generate_ops.py`` alone.
"""

import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))  # as a hook this file is not run in its folder

from op_examples import Example, beginning, cells, examples  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

    from geon.op_graph.core.primitive import Primitive

HEAD = """# Ops

Every public function of `geon` and each class of it that programs name has a page with its
signature, what it takes and gives, errors, and an example that was run; classes of errors are
[listed](errors.md). [Fourier transforms](fourier.md), [distributions](distributions.md), layers,
optimisers and training, which [networks of layers](neon.md) teaches, [ONNX files](onnx.md),
functions of xarray's arrays, as in [labelled data](labelled-data.md), and
[eager arrays](eager.md) follow after these. Axes of a tensor are a `geon.Axis` or its name; `x` may
be a tensor, an array, a number or a nested list.
Every function that has `name`, `tags` and `follows` takes a name to show in messages and plans,
tags to find the op by, and ops that are run before it.

The primitives are listed below by kind: what derivatives, targets and tests are made for. Where the
derivative is zero, it is zero by decision, as that of a rounding; a primitive that has none raises
`DerivativeError`. [Axes](axes.md#the-order-of-axes) says the order of axes of every result.
"""
CLASSES = (
    "Axis", "Axes", "Op", "Tensor", "Window", "Random", "Transformer", "NativeTransformer",
    "Computation",
)  # fmt: skip
GROUP_OF_CLASSES = "Classes"
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
GROUPS = {"integers": DTYPES[1:9], "floats": DTYPES[9:13], "complex numbers": DTYPES[13:]}
OPERATORS = {
    "add": "x + y", "subtract": "x - y", "multiply": "x * y", "divide": "x / y",
    "floordivide": "x // y", "mod": "x % y", "power": "x ** y", "negative": "-x",
    "absolute": "abs(x)", "less": "x < y", "less_equal": "x <= y", "greater": "x > y",
    "greater_equal": "x >= y", "equal": "x == y", "not_equal": "x != y", "bitwise_and": "x & y",
    "bitwise_or": "x | y", "bitwise_xor": "x ^ y", "bitwise_not": "~x", "left_shift": "x << y",
    "right_shift": "x >> y", "dot": "x @ y",
}  # fmt: skip


def sentence(doc: str | None) -> str:
    """The first paragraph of a docstring on one line, safe inside a table."""
    first = inspect.cleandoc(doc or "").split("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace("|", "\\|")


def table(heading: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown section with one table."""
    lines = [columns, ("---",) * len(columns), *rows]
    return f"## {heading}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


# Of functions that are more than the row of their name, what their pages say.
DERIVATIVES = {
    "top_k": (
        "that of the values, of any order, goes to the elements that were found; the positions, "
        "which are integers, have none"
    ),
    "cummax": "of any order; of equal elements the first one gets it",
    "cummin": "of any order; of equal elements the first one gets it",
    "sequential": "that of the last item, of any order, with variables as they were assigned",
}


def derivative(row: "Primitive") -> str:
    """What the table says of the derivative of a row."""
    if not row.differentiable:
        return ""
    return "zero" if row.partials and not any(row.partials) else "yes"


def primitives() -> list[str]:
    """One table for each kind of primitive, in the registry's order."""
    import geon  # noqa: F401  # the rows register themselves
    from geon.op_graph.core.primitive import KINDS, PRIMITIVES

    sections = []
    for kind in KINDS:
        rows = [
            (f"`{row.name}`", sentence(row.doc), derivative(row))
            for row in PRIMITIVES.values()
            if row.kind == kind and row.own
        ]
        if rows:
            sections.append(table(f"Primitives: {kind}", ("row", "gives", "derivative"), rows))
    return sections


# What has a page ------------------------------------------------------------------------------


def public() -> dict[str, Any]:
    """Every public function and class by the name of its page; aliases share the page."""
    import geon

    found: dict[int, tuple[str, Any]] = {}
    for name in sorted(dir(geon), reverse=True):  # of aliases the last, in lower case, counts
        value = getattr(geon, name)
        function = callable(value) and not inspect.isclass(value)
        if not name.startswith("_") and (function or name in CLASSES):
            found.setdefault(id(value), (name, value))
    return dict(sorted(found.values(), key=lambda pair: pair[0].lower()))


def page(name: str) -> str:
    """The file name of a page: that of a class also differs where case does not count."""
    return f"class-{name}.md" if name in CLASSES else f"{name}.md"


def aliases(name: str, value: Any) -> list[str]:
    """The other public names of a function."""
    import geon

    return [
        other
        for other in dir(geon)
        if getattr(geon, other) is value and other != name and not other.startswith("_")
    ]


def parameter(p: inspect.Parameter) -> str:
    """A parameter as a person reads it: annotations without quotes."""
    stars = "*" * (p.kind is p.VAR_POSITIONAL) or "**" * (p.kind is p.VAR_KEYWORD)
    text = f"{stars}{p.name}"
    if p.annotation is not p.empty:
        text += f": {p.annotation}"
    if p.default is not p.empty:
        default = p.default.__name__ if inspect.isfunction(p.default) else repr(p.default)
        text += f"{' = ' if p.annotation is not p.empty else '='}{default}"
    return text


def signatures(call: str, function: Callable[..., Any]) -> str:
    """The signatures of a function, of which it has several where the types say more."""
    found = typing.get_overloads(function) if inspect.isfunction(function) else []
    forms = found or [function]
    return "\n".join(signature(call, form) for form in forms)


def signature(call: str, function: Callable[..., Any]) -> str:
    """A signature as code: on one line where it fits, else a parameter on each."""
    found = inspect.signature(function)
    parts = []
    before = None
    for p in found.parameters.values():
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        if before is p.POSITIONAL_ONLY and p.kind is not before:
            parts.append("/")
        parts.append(parameter(p))
        before = p.kind
    given = found.return_annotation
    end = "" if given in (found.empty, None, "None") else f" -> {given}"
    one_line = f"{call}({', '.join(parts)}){end}"
    if len(one_line) <= 88:
        return one_line
    return "\n".join([f"{call}(", *(f"    {part}," for part in parts), f"){end}"])


def call(name: str, function: Callable[..., Any]) -> str:
    """A call as a person would write it, without annotations and defaults."""
    parameters = inspect.signature(function).parameters.values()
    names = [str(p).split(":")[0].split("=")[0] for p in parameters if p.name != "self"]
    return f"{name}({', '.join(names)})"


def linked(text: str, names: Iterable[str], own: str) -> str:
    """A docstring as Markdown, with links where it names other functions."""
    pages = set(names)

    def link(match: re.Match[str]) -> str:
        word = match[1]
        name = word.removeprefix("geon.")
        return f"[`{word}`]({page(name)})" if name in pages and name != own else f"`{word}`"

    return re.sub(r"``(.+?)``", link, text, flags=re.DOTALL)


# What a page says -----------------------------------------------------------------------------


def among(names: list[str]) -> str:
    """dtypes by the words for groups of them."""
    words = []
    for word, group in GROUPS.items():
        if set(group) <= set(names):
            names = [name for name in names if name not in group] + [word]
    words = [name if name in GROUPS else f"`{name}`" for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def dtypes(function: Callable[..., Any], count: int) -> str:
    """What the result is for operands of each dtype, found by building it; "" where that fails."""
    import geon

    axis = geon.Axis("B", 3)
    kept: list[str] = []
    given: dict[str, list[str]] = {}
    refused: list[str] = []
    for dtype in DTYPES:
        operands = [geon.placeholder([axis], dtype) for _ in range(count)]
        if count == 3:
            operands[0] = geon.placeholder([axis], "bool")
        try:
            out = function(*operands).dtype.name
        except geon.DTypeError:
            refused.append(dtype)
        else:
            (kept if out == dtype else given.setdefault(out, [])).append(dtype)
    parts = [f"keeps {among(kept)}"] if kept else []
    parts += [f"gives `{out}` for {among(names)}" for out, names in given.items()]
    parts += [f"refuses {among(refused)}"] if refused else []
    return "; ".join(parts)


def takes(function: Callable[..., Any]) -> int | None:
    """The number of tensors that a function takes, where it needs nothing else."""
    from geon.op_graph.building.elementwise_build import Elementwise

    if isinstance(function, Elementwise):
        return function.arity
    parameters = list(inspect.signature(function).parameters.values())
    needed = [p for p in parameters if p.default is p.empty]
    one = [p.name for p in needed] == ["x"]
    return 1 if one and str(inspect.signature(function).return_annotation) == "Tensor" else None


def facts(name: str, function: Any) -> list[str]:
    """Bullets: axes, dtypes, derivative, and other ways to write it."""
    import geon
    from geon.op_graph.building.elementwise_build import Elementwise
    from geon.op_graph.core.primitive import PRIMITIVES
    from geon.op_graph.syntax.foreign_names import is_missing

    found = []
    if isinstance(function, Elementwise):
        more = ", then the new ones of each further operand; shared ones are matched by name"
        found.append(f"**Axes**: those of `x`{more if function.arity > 1 else ''}.")
    count = takes(function)
    said = "" if count is None else dtypes(function, count)
    if said:
        both = "" if count == 1 else " (operands of one dtype)"
        found.append(f"**dtypes**{both}: {said}.")
    row = PRIMITIVES.get(name)
    if name in DERIVATIVES:
        found.append(f"**Derivative**: {DERIVATIVES[name]}.")
    elif row is not None and (row.differentiable or row.kind not in ("leaf", "effect")):
        told = {"": "none: `geon.deriv` through it raises `DerivativeError`", "yes": "of any order"}
        found.append(f"**Derivative**: {told.get(derivative(row), 'zero, by decision')}.")
    ways = [OPERATORS[name]] if name in OPERATORS else []
    if hasattr(geon.Tensor, name) and not is_missing(geon.Tensor, name) and callable(function):
        ways.append(f"x.{name}(...)")
    if isinstance(function, Elementwise) and function.ufunc is not None:
        ways.append(f"np.{function.ufunc}({', '.join('xyz'[: function.arity])})")
    if ways:
        found.append("**Also written**: " + ", ".join(f"`{way}`" for way in ways) + ".")
    other = aliases(name, function)
    if other:
        found.append("**Other names**: " + ", ".join(f"`geon.{alias}`" for alias in other) + ".")
    return found


UNKNOWN = "`ArgumentError` for arguments that it does not have, or that are missing."
NO_TENSOR = "`DTypeError` for what is no tensor, number, array or list."
UNSHARED = (
    "`AxisError` for two lengths of one axis, and for tensors that share no axis: "
    "[`outer`](outer.md) and [`broadcast`](broadcast.md) are the cures."
)


def axes_of_x(function: Callable[..., Any]) -> list[str]:
    """The parameters of a function that are axes which its first argument has."""
    types = {p.name: str(p.annotation) for p in inspect.signature(function).parameters.values()}
    if "x" not in types or function.__name__ == "broadcast":  # whose axes are the result's
        return []
    return [name for name, kind in types.items() if kind.startswith(("AxesLike", "AxisLike"))]


def errors(function: Any) -> list[str]:
    """Bullets: what a call with wrong arguments raises."""
    from geon.op_graph.building.elementwise_build import Elementwise

    if isinstance(function, Elementwise):
        found = ["`DTypeError` for a dtype that it does not take."]
        if function.arity > 1:
            found.insert(0, UNSHARED)
        return [*found, UNKNOWN]
    found = []
    known = axes_of_x(function)
    if known:
        names = " or ".join(f"`{name}`" for name in known)
        found.append(f"`AxisError` for an axis in {names} that `x` does not have.")
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is not None and first.name == "x" and "TensorLike" in str(first.annotation):
        found.append(NO_TENSOR)
    return [*found, UNKNOWN]


def function_page(name: str, value: Any, example: Example, names: Iterable[str]) -> str:
    """The page of a function."""
    doc = inspect.getdoc(value) or ""
    paragraphs = [linked(doc, names, name)]
    bullets = facts(name, value)
    raised = errors(value)
    parts = [f"# geon.{name}", fenced(signatures(f"geon.{name}", value), "python"), *paragraphs]
    if bullets:
        parts.append("\n".join(f"- {fact}" for fact in bullets))
    if raised:
        parts.append("## Errors\n\n" + "\n".join(f"- {error}" for error in raised))
    return "\n\n".join([*parts, *example_section(example)]) + "\n"


def class_page(name: str, cls: type, example: Example | None, names: Iterable[str]) -> str:
    """The page of a class: what it is, an example, and every public member."""
    parts = [f"# geon.{name}", linked(inspect.getdoc(cls) or "", names, name)]
    if example is not None:
        parts += example_section(example)
    parts.append("## Members")
    seen = set()
    for owner in cls.__mro__:
        for member, value in vars(owner).items():
            function = inspect.isfunction(value) or isinstance(value, property)
            doc = inspect.getdoc(value)
            if not function or member.startswith("_") or not doc or member in seen:
                continue
            seen.add(member)
            if isinstance(value, property):
                parts.append(f"### {member}")
            else:
                parts.append(f"### {member}\n\n{fenced(signatures(member, value), 'python')}")
            parts.append(linked(doc, names, name))
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def example_section(example: Example) -> list[str]:
    """What was run and what it printed, and what it begins with."""
    parts = ["## Example", fenced(example.code, "python")]
    if example.output:
        parts.append(fenced(example.output, "text"))
    begin = fenced(beginning(), "python")
    summary = "<summary>begin.py: what every example begins with</summary>"
    return [*parts, f'<details markdown="1">\n{summary}\n\n{begin}\n\n</details>']


# Frontends ------------------------------------------------------------------------------------

# Each with a page of its own.
FRONTEND_BASES = ("Layer", "Optimiser", "Callback", "Activation", "Distribution")
NAMESPACES = ("fft", "distributions", "linalg", "eager")
FRONTENDS = {
    "fft": "Fourier transforms",
    "distributions": "Probability distributions",
    "linalg": "Linear algebra",
    "eager": "Eager arrays",
    "neon": "Networks of layers",
    "onnx": "ONNX files",
    "xarray": "Labelled arrays",
}


def module_of(space: str) -> Any:
    """The module of a frontend, or of a namespace of geon itself."""
    inside = space in NAMESPACES
    return importlib.import_module(f"geon.{space}" if inside else f"geon.frontends.{space}")


def frontend_pages(frontend: str) -> dict[str, str]:
    """The pages of a frontend by name, such as ``neon.Adam``: a class, a function or a module."""
    module = module_of(frontend)
    return {
        f"{frontend}.{name}": member_page(f"{frontend}.{name}", getattr(module, name))
        for name in sorted(module.__all__, key=str.lower)
    }


def member_page(name: str, value: Any) -> str:
    """The page of a class with its constructor and own methods, of a function, or of a module."""
    parts = [f"# {name}"]
    if inspect.ismodule(value):
        parts.append(linked(inspect.getdoc(value) or "", (), name))
        for own, each in vars(value).items():
            own_code = getattr(each, "__module__", "").startswith(value.__name__)
            if not own.startswith("_") and (own_code or is_axis(each)):
                parts += [f"## {own}", *described(f"{name}.{own}", each)]
    else:
        parts += described(name, value)
    return "\n\n".join(parts) + "\n"


def is_axis(value: object) -> bool:
    """Whether a member of a module is an axis."""
    import geon

    return isinstance(value, geon.Axis)


def described(name: str, value: Any) -> list[str]:
    """The signature and the docstring of a class, a function or an axis; of a class its methods."""
    if is_axis(value):
        return [f"The axis `{value}`."]
    parts = []
    is_error = inspect.isclass(value) and issubclass(value, Exception)
    if callable(value) and not is_error:
        parts.append(fenced(signatures(name, value), "python"))
    parts.append(linked(inspect.getdoc(value) or "", (), name))
    if inspect.isclass(value):
        for owner in value.__mro__[:-1]:
            page = f"{name.partition('.')[0]}.{owner.__name__}"
            if owner is not value and owner.__name__ in FRONTEND_BASES:
                parts.append(f"It has the members of [`{page}`]({page}.md) too.")
                break
            for member, each in vars(owner).items():
                known = inspect.isfunction(each) or isinstance(each, property)
                if known and not member.startswith("_") and getattr(value, member) is each:
                    shown = fenced(signatures(member, each), "python") if callable(each) else ""
                    parts += [f"### {member}", shown, linked(inspect.getdoc(each) or "", (), name)]
    return [part for part in parts if part]


# All of it ------------------------------------------------------------------------------------


def groups() -> dict[str, list[str]]:
    """The names of the pages by group, those of functions first."""
    pages, found = public(), cells()
    made: dict[str, list[str]] = {}
    for name in pages:
        if name not in CLASSES:
            made.setdefault(found[name][0], []).append(name)
    return {group: made[group] for group in sorted(made)} | {GROUP_OF_CLASSES: list(CLASSES)}


def listed() -> str:
    """The page that lists everything."""
    pages = public()
    sections = []
    for group, names in groups().items():
        rows = []
        for name in names:
            shown = name if name in CLASSES else call(f"geon.{name}", pages[name])
            gives = sentence(pages[name].__doc__)
            gives += "".join(f" Also `geon.{also}`." for also in aliases(name, pages[name]))
            rows.append((f"[`{shown}`](ops/{page(name)})", gives))
        sections.append(
            table(group, ("call" if group != GROUP_OF_CLASSES else "class", "gives"), rows)
        )
    for frontend, heading in FRONTENDS.items():
        module = module_of(frontend)
        rows = [
            (
                f"[`{name}`](ops/{name}.md)",
                sentence(getattr(module, name.partition(".")[2]).__doc__),
            )
            for name in frontend_pages(frontend)
        ]
        sections.append(table(heading, ("name", "is"), rows))
    return "\n".join([HEAD, *sections, *primitives()])


def files() -> dict[Path, str]:
    """Every file of the reference and what it has to say."""
    pages, found = public(), examples()
    unknown = found.keys() - pages.keys()
    lacking = [name for name in pages if name not in found and name not in CLASSES]
    if lacking:
        raise ValueError(f"docs/examples has no cell '# %% NAME' of {', '.join(lacking)}")
    if unknown:
        raise ValueError(f"there are examples of what is not public: {sorted(unknown)}")
    texts = {DOCS / "ops.md": listed()}
    for name, value in pages.items():
        if name in CLASSES:
            text = class_page(name, value, found.get(name), pages)
        else:
            text = function_page(name, value, found[name], pages)
        texts[DOCS / "ops" / page(name)] = text
    for frontend in FRONTENDS:
        for name, text in frontend_pages(frontend).items():
            texts[DOCS / "ops" / f"{name}.md"] = text
    return texts


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Put the pages of functions below the list of ops."""
    sections = [
        {group: [{name: f"ops/{page(name)}"} for name in names]}
        for group, names in groups().items()
    ]
    sections += [
        {heading: [{name: f"ops/{name}.md"} for name in frontend_pages(frontend)]}
        for frontend, heading in FRONTENDS.items()
    ]
    nav = config["nav"]
    at = nav.index({"Ops": "ops.md"})
    nav[at] = {"Ops": [{"All ops": "ops.md"}, *sections]}
    return config


def on_pre_build(config: "MkDocsConfig") -> None:
    """Write the reference before the site is built."""
    write()


def write() -> None:
    """Write every page that differs from what is there, and delete those of names that are gone."""
    wanted = files()
    for path in (DOCS / "ops").glob("*.md"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write()
