"""Who may say for whom ops are built: drivers of rules, and nothing else by a thread's state."""

import ast
from pathlib import Path

import pytest

import geon
from geon.op_graph.core.interning import OwnTable
from geon.op_graph.core.source_info import building, current
from geon.op_graph.rewriting.driver import RuleSet, rewrite

ROOT = Path(geon.__file__).parent
# The files that run rules, or copy ops, for lines of the user's, or into a computation's own table.
DRIVERS = {
    "eager/symbolic_calls.py",
    "frontends/jax/loading.py",
    "frontends/onnx/builder.py",
    "frontends/program/evaluation.py",
    "frontends/torch/loading.py",
    "transformers/lowering/planning/derivable_values.py",
    "op_graph/transforms/clone.py",
    "op_graph/autodiff/custom_deriv.py",
    "op_graph/transforms/functionalize.py",
    "op_graph/transforms/batching.py",
    "op_graph/text/loads.py",
    "op_graph/regions/carries.py",
    "op_graph/regions/cases.py",
    "op_graph/regions/segments.py",
    "op_graph/rewriting/region_cleanup.py",
    "op_graph/building/rebuild.py",
    "op_graph/rewriting/driver.py",
    "op_graph/transforms/derivative_sweeps.py",
    "transformers/lowering/planning/memory_budget.py",
    "transformers/lowering/fusion/layout.py",
    "transformers/lowering/rules/complex_parts.py",
    "transformers/lowering/rules/gather_products.py",
    "transformers/lowering/rules/matrix_rules.py",
    "transformers/lowering/rules/position_checks.py",
    "transformers/lowering/rules/program.py",
    "transformers/lowering/rules/rematerialisation.py",
    "transformers/lowering/planning/schedule.py",
    "transformers/binding/variables.py",
}
# Those that make one op, and so look whom it is for.
MAKERS = {
    "op_graph/functions/composites.py",  # what users' calls of them are called
    "op_graph/building/constants.py",
    "op_graph/op_graph.py",
    "op_graph/syntax/operators.py",
    "op_graph/random/streams.py",  # a draw in a loop counts its step
}
# NumPy's warnings are silenced in a context of each arena.
CONTEXTS = {
    "eager/nodes.py",
    "op_graph/core/source_info.py",
    "transformers/runtime/calls.py",
    "frontends/nnc/streams.py",  # the stream whose thread it is
    # Guards of programs: the current program, scope and evaluation of a thread.
    "frontends/program/evaluation.py",
    "frontends/program/program.py",
    "frontends/program/scope.py",
}


def files_that(use, words):
    """The files of geon one of whose nodes ``use`` holds for, relative to the package.

    The text of such a node contains one of ``words``: other files are not parsed.
    """
    return {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if any(word in (text := path.read_text()) for word in words)
        if any(map(use, ast.walk(ast.parse(text))))
    }


def imports_building(node):
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").endswith("source_info"):
        return False
    return bool({alias.name for alias in node.names} & {"building", "current"})


def is_state_of_a_thread(node):
    if isinstance(node, ast.Attribute):
        return node.attr == "local" and isinstance(node.value, ast.Name)
    return isinstance(node, ast.Import) and "contextvars" in [alias.name for alias in node.names]


def test_drivers_alone_say_for_whom_ops_are_built():
    assert files_that(imports_building, ["source_info"]) == DRIVERS | MAKERS


def test_nothing_else_is_kept_for_a_thread():
    assert files_that(is_state_of_a_thread, [".local", "contextvars"]) == CONTEXTS


def fail(op):
    raise ValueError("no")


def a_rule_that_fails(x):
    rewrite([geon.tanh(x)], RuleSet("failing", {"tanh": (fail,)}), {}, OwnTable())


def a_slope_that_fails(x):
    geon.deriv(geon.custom_deriv(lambda *_: None)(geon.tanh)(x), x)


def a_dump_that_is_none(x):
    geon.loads(geon.dumps(geon.tanh(x)).replace("tanh", "nothing"))


@pytest.mark.parametrize("failing", [a_rule_that_fails, a_slope_that_fails, a_dump_that_is_none])
def test_a_driver_that_raises_leaves_the_thread_as_it_was(failing):
    own, site = OwnTable(), geon.tanh(geon.placeholder(()))._site
    with building(own) as here:
        here.site = site
        x = geon.placeholder(())
        with pytest.raises(geon.GeonError):
            failing(x)
        assert (current.own, current.site) == (own, site)
    assert (current.own, current.site) == (None, None)


def test_ops_of_a_block_are_in_its_table_and_carry_the_line_that_was_set():
    x = geon.placeholder(())
    user, own = geon.tanh(x), OwnTable()
    with building(own) as here:
        here.site = (__file__, 7, "for another")
        made = geon.tanh(x)
    assert made is not user
    assert made in [entry() for entry in own.entries.values()]
    assert made.file_info.endswith("test_building.py:7 (for another)")
    assert geon.tanh(x) is user
