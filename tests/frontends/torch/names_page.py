"""Write ``docs/pytorch-names.md``, the page of PyTorch's operators, from the table in ``names``.

``python -m tests.frontends.torch.names_page`` writes it anew.
"""

from pathlib import Path

from tests.frontends.torch import names

PAGE = Path(__file__).parents[3] / "docs" / "pytorch-names.md"
HEAD = """# PyTorch's operators in geon

PyTorch's tests have a database of {all} operators and variants. geon can say {said} of them, by an
expression with named axes. The others follow with the reason. A test runs each expression and
compares it with PyTorch: those of elements on PyTorch's own samples, the others on the data of this
page, in float64. Of random tensors it compares the axes.

[The page for people from PyTorch](other-libraries.md) explains the differences, and the
[op reference](ops.md) each function.

## Functions of elements

`x`, `y` and `z` are the operands.
"""
DATA = """## Other functions

| | over | |
|---|---|---|
| `x`, `u`, `t`, `z` | A, B | `t` is between 0 and 1, `z` complex |
| `n`, `m`, `i` | A, B; `i`: A | integers, truth values, positions along B |
| `v`, `w`, `e` | A; B; E | vectors |
| `y`, `s`, `p` | B, C; A, A'; A, A' | matrices, `p` positive definite |
| `b`, `d`, `l` | K, A, B; K, B, C; C, B, B' | batches of matrices |
| `c`, `h` | N, D, L; M, D, R | a batch of rows with D channels, and filters |
| `g`, `k` | N, D, H, W; M, D, R, S | a batch of images, and filters |
"""
DRAWS = """## Random tensors

`stream` is a `geon.Random`; values are those of [its generator](random-numbers.md), not PyTorch's.
"""
REASONS = """## Without an expression
"""


def cell(code: str) -> str:
    """Code in a table."""
    return "`" + code.replace("|", "\\|") + "`"


def grouped(table: dict[str, str]) -> dict[str, list[str]]:
    """Names by what is said of them."""
    found: dict[str, list[str]] = {}
    for name, said in table.items():
        found.setdefault(said, []).append(name)
    return found


def text() -> str:
    """The page."""
    said = len(names.ELEMENTWISE) + len(names.EXAMPLES) + len(names.DRAWS)
    parts = [HEAD.format(all=said + len(names.REASONS), said=said)]
    parts.append(rows(("operator", "geon"), [(n, cell(e)) for n, e in names.ELEMENTWISE.items()]))
    by_pair: dict[tuple[str, str], list[str]] = {}
    for name, pair in names.EXAMPLES.items():
        by_pair.setdefault(pair, []).append(name)
    parts.append(DATA)
    parts.append(
        rows(
            ("operators", "PyTorch", "geon"),
            [(", ".join(found), cell(a), cell(b)) for (a, b), found in by_pair.items()],
        )
    )
    parts.append(DRAWS)
    parts.append(rows(("operator", "geon"), [(n, cell(e)) for n, e in names.DRAWS.items()]))
    parts.append(REASONS)
    reasons = [(", ".join(found), why) for why, found in grouped(names.REASONS).items()]
    parts.append(rows(("operators", "reason"), reasons))
    return "\n".join(parts)


def rows(heads: tuple[str, ...], cells: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [heads, ("---",) * len(heads), *((escaped(name), *rest) for name, *rest in cells)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def escaped(name: str) -> str:
    """Names of operators, whose underscores are no emphasis."""
    return name if name in ("operator", "operators") else name.replace("_", "\\_")


if __name__ == "__main__":
    PAGE.write_text(text())
