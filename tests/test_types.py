"""Public signatures are precise: a type checker tells the right lines of a page from wrong ones."""

import __future__

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import geon

PAGE = Path(__file__).parent / "user_page.py"


def test_a_type_checker_refuses_the_wrong_lines_and_no_others(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "--config-file=",
         "--follow-imports=silent", str(PAGE)],
        capture_output=True, text=True, cwd=PAGE.parent.parent, check=False,
    )  # fmt: skip
    refused = {int(line) for line in re.findall(r"user_page\.py:(\d+): error", done.stdout)}
    lines = PAGE.read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 30
    assert {n: lines[n - 1] for n in refused ^ wrong} == {}, done.stdout


def test_the_names_that_checkers_know_are_the_public_ones():
    tree = ast.parse(Path(geon.__file__).read_text())
    (listed,) = [
        ast.literal_eval(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    public = {name for name in dir(geon) if not name.startswith("_")} - vars(__future__).keys()
    assert set(listed) == {n for n in public if not inspect.ismodule(getattr(geon, n))}
    assert len(listed) == len(set(listed))


def test_operands_axes_and_dtypes_are_nowhere_any():
    """The parameters that a user gives to functions of expressions have types."""
    named = {"x", "y", "axes", "axis", "dtype", "tags", "follows", "over", "reduction_axes",
             "out_axes", "normalization_axes", "value", "index", "tensors", "operands"}  # fmt: skip
    left = []
    for name in dir(geon):
        function = getattr(geon, name)
        if name[0] == "_" or not inspect.isfunction(function) or name in OVERLOADED:
            continue
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in named and parameter.annotation in ("Any", "Sequence[Any]"):
                left.append(f"{name}({parameter.name})")
    assert left == []


# Their overloads have types, and what runs takes both.
OVERLOADED = {"deriv", "vjp", "jvp", "hvp", "jacobian", "hessian"}
