"""What people see: expressions as text, effects with what they change, cells and tracebacks."""

import sys
import tempfile
import types
from pathlib import Path

import pytest

import geon
from geon.op_graph.text.display import MAX_UNFOLDED_LINES, fold_lines
from tests.places import here

N, C = geon.Axis("N"), geon.Axis("C", 4)
FILE = str(Path(tempfile.gettempdir()) / "ipykernel_41" / "8273645.py")


@pytest.fixture
def ipython(monkeypatch):
    """A stand-in for IPython, whose third cell is kept under ``FILE``."""
    names = {FILE: ("Cell", "In[3]")}
    compiler = types.SimpleNamespace(format_code_name=names.get)
    shell = types.SimpleNamespace(compile=compiler)
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)


def cell(source, **names):
    """Run a cell; the names that it has then."""
    namespace = {"geon": geon, "N": N, "C": C, **names}
    exec(compile(source, FILE, "exec"), namespace)
    return namespace


def test_a_line_of_a_cell_is_named_by_its_number(ipython):
    x = cell("\nx = geon.placeholder([N, C], name='x')")["x"]
    assert x.file_info == "Cell In[3], line 2"
    assert repr(x) == "<placeholder x(N, C:4) float32 at Cell In[3], line 2>"
    with pytest.raises(geon.AxisError, match=r"^sum at Cell In\[3\], line 3: axis 'Z' is no axis"):
        cell("\n\ny = geon.sum(x, 'Z')", x=x)
    assert geon.text(geon.exp(x)).splitlines()[1] == "  x = placeholder (N, C:4) float32"


def test_without_ipython_the_file_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert cell("x = geon.placeholder(C)")["x"].file_info == f"{FILE}:1"
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert cell("x = geon.placeholder(C)")["x"].file_info == f"{FILE}:1"


def test_ipython_shows_no_frames_of_geon(ipython):
    x = geon.placeholder([N, C], name="x")
    with pytest.raises(geon.AxisError) as caught:
        cell("def f(x):\n    return geon.mean(x, 'Z')\n\nf(x)", x=x)
    lines = caught.value._render_traceback_()
    assert lines[0] == "Traceback (most recent call last):"
    assert not any(geon.__path__[0] in line for line in lines)
    assert "  Cell In[3], line 4, in <module>" in lines and "  Cell In[3], line 2, in f" in lines
    assert lines[-1].startswith("geon.errors.AxisError: tensor_size") or "axis 'Z'" in lines[-1]


def test_text_of_an_expression():
    x = geon.placeholder([N, C], name="x")
    y, made = geon.add(geon.tanh(x), 1.5, name="y"), here()
    assert geon.text(y) == (
        f"y = add (N, C:4) float32, made at tests/op_graph/{made}\n"
        "  tanh (N, C:4) float32\n"
        "    x = placeholder (N, C:4) float32\n"
        "  1.5 float32"
    )
    for _ in range(50):
        y = geon.tan(y)
    assert len(geon.text(y).splitlines()) == 6
    assert len(geon.text(y, levels=100).splitlines()) == 54
    v = geon.Variable(C, initial_value=0, name="v")
    assert geon.text(geon.assign(v, v + 1)).splitlines()[1:3] == [
        "  v = variable (C:4) float32",
        "  add (C:4) float32",
    ]
    with pytest.raises(geon.ArgumentError, match="text takes an op, not 3"):
        geon.text(3)


def test_effects_say_what_they_change():
    v, w = (geon.Variable(C, initial_value=0, name=name) for name in "vw")
    step, line = geon.assign(v, v + 1), here()
    assert str(step) == "assign(v(C:4))"
    assert repr(step) == f"<assign assign(v(C:4)) void at tests/op_graph/{line}>"
    both = geon.doall([step, geon.assign(w, 0.0)])
    assert str(both) == "doall(assign(v(C:4)), assign(w(C:4)))"
    assert str(geon.doall([both])) == "doall(doall(...))"
    assert str(geon.doall([geon.assign(v[i], 1.0) for i in range(4)] + [step])).endswith(", ...)")
    named = geon.assign(v, 2.0, name="reset")
    assert str(named) == "reset(v(C:4))"
    nested = step
    for _ in range(5000):
        nested = geon.doall([nested])
    assert str(nested) == "doall(doall(...))"


def test_what_is_large_is_folded():
    few = fold_lines("plan", ["<x>"] * MAX_UNFOLDED_LINES)
    assert few.startswith("<pre>&lt;x&gt;")
    many = fold_lines("plan", ["x"] * (MAX_UNFOLDED_LINES + 1))
    assert many.startswith(
        f"<details><summary>plan, {MAX_UNFOLDED_LINES + 1} lines</summary><pre>x"
    )
    x = geon.placeholder([N, C])
    wide = geon.concat([geon.concat([x + i + j for i in range(6)], C) for j in range(6)], C)
    assert "<details><summary>expression, " in wide._repr_html_()
    assert "<details>" not in geon.exp(x)._repr_html_()


def test_a_computation_shows_its_plan():
    x = geon.placeholder([N, C], name="x")
    shown = geon.NumPyTransformer().computation(geon.exp(x), x)._repr_html_()
    assert shown.endswith("</pre>") and "0: exp(N, C:4)" in shown
    y = x
    for _ in range(30):
        y = geon.tanh(y) * x
    shown = geon.NumPyTransformer().computation(y, x)._repr_html_()
    assert "<details><summary>plan, " in shown
