"""Variables of all types, scopes inside each other, memory and threads."""

import gc
import threading
import weakref

import numpy as np
import pytest

import geon
from geon.frontends.program import layers
from geon.frontends.program.scope import (
    Scope,
    ScopeTensor,
    Variable,
    current_scope,
    global_scope,
    scope_guard,
)

from .program_cases import new_program


@pytest.mark.parametrize(
    ("type", "value"),
    [(int, 3), (bool, True), (float, 2.5), (np.float16, np.float16(0.5)), (str, "text")],
)
def test_a_variable_holds_one_value_of_its_type(type, value):
    variable = Variable()
    variable.get_mutable(type)[...] = value
    assert variable.is_type(type) and variable.get(type) == value
    assert isinstance(variable.get(), type)
    other = Variable()
    other.set(value)
    assert other.get(type) == value
    with pytest.raises(geon.DTypeError, match=f"holds a {variable.type}, not a scope"):
        variable.get(Scope)
    with pytest.raises(geon.DTypeError, match="holds a"):
        variable.set(Scope())


def test_variables_hold_operators_scopes_and_tensors():
    with new_program() as run:
        x = layers.data("x", [2])
        layers.tanh(x)
        operator = run.main.global_block().ops[0]
    scope, variable = Scope(), Variable()
    variable.set(operator)
    assert variable.get("operator") is operator and variable.is_type(type(operator))
    variable = Variable()
    variable.set(scope)
    assert variable.get(Scope) is scope
    assert Variable().get_mutable("scope").local_names() == []
    with pytest.raises(geon.DTypeError, match="no type of a variable"):
        Variable().set(object())
    with pytest.raises(geon.FeedError, match="holds nothing"):
        Variable().get(int)


def test_a_tensor_allocates_when_it_is_read():
    tensor = Variable().get_mutable(np.ndarray)
    assert isinstance(tensor, ScopeTensor) and not tensor.is_allocated
    tensor = ScopeTensor((2, 3), "float64")
    assert not tensor.is_allocated and tensor.array.shape == (2, 3) and tensor.is_allocated
    tensor.array[0] = 5
    assert np.asarray(tensor)[0, 1] == 5
    source = np.ones(4, np.float32)
    tensor.set(source)
    source[:] = 0
    assert tensor.array.sum() == 4 and tensor.array.dtype == np.float64
    with pytest.raises(geon.FeedError, match="complex64 for a tensor of float64"):
        tensor.set(np.ones(2, np.complex64))


def test_scopes_look_names_up_in_those_around_them():
    outer = Scope()
    inner = outer.create_scope()
    a = outer.var("a")
    assert inner.find_var("a") is a and inner.find_var("b") is None
    own = inner.var("a")
    assert own is not a and inner.find_var("a") is own and outer.find_var("a") is a
    assert inner.var("a") is own and inner.parent is outer
    inner.bind("other", a)  # a variable has no name: scopes give it names
    assert inner.find_var("other") is a and inner.local_names() == ["a", "other"]
    inner.erase(["other"])
    assert inner.find_var("other") is None and outer.find_var("a") is a


def test_deleting_a_scope_frees_its_memory_and_the_scopes_inside():
    outer = Scope()
    shared = outer.var("shared")
    shared.set(1)
    inner = outer.create_scope()
    deep = inner.create_scope()
    tensor = deep.var("w").get_mutable("tensor")
    tensor.set(np.ones(1000))
    memory = weakref.ref(tensor.array)
    deep.bind("alias", shared)
    outer.delete_scope(inner)
    gc.collect()
    assert memory() is None and not tensor.is_allocated
    assert shared.get() == 1  # another scope names it
    for scope in (inner, deep):
        with pytest.raises(geon.ClosedError, match="the scope was deleted"):
            scope.var("w")
    with pytest.raises(geon.ArgumentError, match="was not made by create_scope of this scope"):
        outer.delete_scope(inner)


def test_threads_get_one_variable_for_a_name():
    scope, found, start = Scope(), [], threading.Barrier(8)

    def work():
        start.wait()
        for k in range(200):
            found.append((k, scope.var(f"v{k}")))
            scope.create_scope().var("own").set(k)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1600 and len({id(v) for _, v in found}) == 200


def test_the_current_scope_belongs_to_a_thread():
    scope, seen = Scope(), []
    with scope_guard(scope):
        assert current_scope() is scope
        thread = threading.Thread(target=lambda: seen.append(current_scope()))
        thread.start()
        thread.join()
    assert seen == [global_scope()] and current_scope() is global_scope()


def test_estimated_is_a_mark_of_a_variable():
    variable = Variable()
    assert not variable.estimated
    variable.estimated = True
    assert variable.estimated
