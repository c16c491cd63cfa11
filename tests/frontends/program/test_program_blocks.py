"""Programs, blocks, names and values; layers and their parameters."""

import threading

import numpy as np
import pytest

import geon
from geon.frontends.program import layers
from geon.frontends.program.program import (
    Parameter,
    Program,
    Var,
    default_main_program,
    default_startup_program,
    program_guard,
)
from geon.frontends.program.registry import ProgramError

from .program_cases import new_program


def test_shapes_and_dtypes_are_inferred_when_an_operator_is_added():
    with new_program() as run:
        x = layers.data("x", [4])
        y = layers.mul(x, layers.create_parameter([4, 3]))
        z = layers.cast(layers.reduce_sum(y, dim=[1]), dtype="int64")
        assert (x.shape, y.shape, z.shape, z.dtype) == ((-1, 4), (-1, 3), (-1,), "int64")
        assert str(y) == "mul.Out_0: (-1, 3) float32"
        assert "Out=[mul.Out_0#2] = mul(X=[x#0], Y=[parameter_0#1])" in str(run.main)


def test_wrong_shapes_name_the_operator_both_variables_and_all_lines():
    with new_program() as run:
        x, y = layers.data("x", [4]), layers.data("y", [5])
        with pytest.raises(geon.AxisError) as caught:
            layers.elementwise_add(layers.tanh(x), y)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("elementwise_add at ") and "test_program_blocks.py:" in lines[0]
    assert "4" in lines[0] and "5" in lines[0] and "lengths must be equal or 1" in lines[0]
    assert lines[1].startswith("  X is tanh.Out_0: (-1, 4) float32, written by tanh at ")
    assert lines[2].startswith("  Y is y: (-1, 5) float32, data, declared at ")
    assert [op.type for op in run.main.global_block().ops] == ["tanh"]


def test_writing_a_name_again_makes_a_new_value():
    with new_program() as run:
        x = layers.data("x", [2])
        y = layers.assign(x)
        doubled = layers.elementwise_add(y, y)
        first = run.main.global_block().names[y.name]
        layers.reduce_sum(y, dim=[1], Out=y)  # another shape, too
        assert run.main.global_block().names[y.name] != first and y.shape == (-1,)
    found = run({"x": [[1, 2]]}, [doubled, y])
    np.testing.assert_array_equal(found[0], [[2, 4]])
    np.testing.assert_array_equal(found[1], [3])


def test_names_that_are_wrong_are_refused():
    with new_program() as run:
        block = run.main.global_block()
        x = layers.data("x", [2])
        with pytest.raises(
            ProgramError, match=r"variable 'x' at .*block 0 has it since .*blocks.py"
        ):
            layers.data("x", [2])
        with pytest.raises(
            ProgramError, match="neither block 0 nor a block around it has the name"
        ):
            layers.tanh("z")
        with pytest.raises(ProgramError, match="is read before an operator writes it"):
            layers.tanh(block.create_var("later"))
        with pytest.raises(ProgramError, match="has no value yet, so no shape"):
            block.var("later").shape  # noqa: B018
        with pytest.raises(geon.AxisError, match="dimension 1 of 'bad' is -2; give a length"):
            layers.data("bad", [-2])
        with pytest.raises(geon.ArgumentError, match="has the dtype datetime64"):
            layers.data("bad", [2], dtype="datetime64[s]")
        with pytest.raises(geon.ArgumentError, match="lod_level=-1; 0 is for tensors"):
            layers.data("deep", [2], lod_level=-1)
        with pytest.raises(geon.ArgumentError, match="0 is no variable; give a variable"):
            layers.elementwise_add(x, 0)
        with pytest.raises(ProgramError, match="global block has none around"):
            run.main.rollback()
        with program_guard(Program()), pytest.raises(ProgramError, match="another program"):
            layers.tanh(x)
        rate = layers.create_global_var([1], 0.5)
        with pytest.raises(ProgramError, match=r"writes \(-1, 2\) float32 to 'global_0', which is"):
            layers.assign(x, Out=rate)


def test_parameters_are_in_the_global_block_and_initialised_by_the_startup_program():
    with new_program() as run:
        x = layers.data("x", [2])
        cond = layers.less_than(layers.mean(x), layers.fill_constant(shape=[1], value=1.0))
        y = layers.assign(x)
        with layers.ConditionalBlock(cond).block() as inner:
            layers.fc(x, 2, param_attr="w", bias_attr=False)
            layers.assign(layers.fc(x, 2, param_attr="w", bias_attr="b", act="tanh"), Out=y)
        names = [p.name for p in run.main.all_parameters()]
        assert names == ["w", "b"] and "w" in inner.parameters
        types = [op.type for op in run.startup.global_block().ops]
        assert types == ["uniform_random", "fill_constant"]
        with pytest.raises(ProgramError, match=r"w: \(2, 2\) float32 exists, and cannot be shared"):
            layers.fc(x, 3, param_attr="w")
    run.start(w=np.eye(2))
    np.testing.assert_allclose(run({"x": [[0.5, 1]]}, [y])[0], np.tanh([[0.5, 1]]), rtol=1e-6)


@pytest.mark.parametrize(
    ("initializer", "spread", "mean"),
    [
        (layers.Constant(3.0), 0, 3),
        (layers.Uniform(1.0, 3.0), 2 / 12**0.5, 2),
        (layers.Normal(1.0, 0.5), 0.5, 1),
        (layers.Xavier(), (2 / 500) ** 0.5, 0),
        (layers.Xavier(uniform=False), (2 / 500) ** 0.5, 0),
        (layers.MSRA(), (2 / 300) ** 0.5, 0),
        (layers.TruncatedNormal(0.0, 1.0), 0.88, 0),
    ],
)
def test_initialisers(initializer, spread, mean):
    with new_program() as run:
        layers.create_parameter([300, 200], attr=layers.ParamAttr("w", initializer))
    run.start()
    value = run.scope.find_var("w").get().array
    assert value.std() == pytest.approx(spread, abs=0.01)
    assert value.mean() == pytest.approx(mean, abs=0.01)


def test_layers_with_parameters():
    draw = np.random.default_rng(0)
    images = draw.normal(size=(2, 3, 6, 5)).astype(np.float32)
    with new_program() as run:
        x = layers.data("x", [3, 6, 5])
        convolved = layers.conv2d(x, 4, 3, padding=1, bias_attr=False, act="relu")
        normal = layers.batch_norm(convolved, momentum=0.5)
        rows = layers.layer_norm(normal)
        both = layers.fc([rows, normal], 7)
        words = layers.embedding(layers.data("words", [1], dtype="int64"), [10, 4], padding_idx=0)
        stats = [
            v.name for v in run.main.list_vars() if v.persistable and not isinstance(v, Parameter)
        ]
        with pytest.raises(ProgramError, match="the width of w.* is open from dimension 1 on"):
            layers.fc(layers.data("w", [-1]), 2)
    assert (convolved.shape, both.shape, words.shape) == ((-1, 4, 6, 5), (-1, 7), (-1, 4))
    run.start()
    found = run({"x": images, "words": [[0], [3]]}, [normal, rows, convolved, words])
    axes = (0, 2, 3)
    np.testing.assert_allclose(found[0].mean(axes), 0, atol=1e-5)
    np.testing.assert_allclose(found[1].reshape(2, -1).std(1), 1, atol=1e-3)
    np.testing.assert_array_equal(found[3][0], 0)
    mean, variance = (run.scope.find_var(name).get().array for name in stats)
    np.testing.assert_allclose(mean, found[2].mean(axes) / 2, rtol=1e-4)
    np.testing.assert_allclose(variance, (1 + found[2].var(axes)) / 2, rtol=1e-4)


def test_default_programs_belong_to_a_thread_and_to_a_guard():
    seen = []
    main, startup = Program(), Program()
    with program_guard(main, startup):
        assert default_main_program() is main and default_startup_program() is startup
        thread = threading.Thread(target=lambda: seen.append(default_main_program()))
        thread.start()
        thread.join()
        with program_guard(Program()):
            assert default_main_program() is not main and default_startup_program() is startup
        assert default_main_program() is main
    assert seen[0] is not main and isinstance(layers.data, type(layers.fc)) and Var is not Parameter


def test_open_lengths_may_be_shared_and_are_checked():
    with new_program() as run:
        x = layers.data("x", ["N", 2], append_batch_size=False)
        y = layers.data("y", [-1, 2], append_batch_size=False)
        z = layers.elementwise_add(x, y)
    run({"x": np.ones((3, 2)), "y": np.ones((3, 2))}, [z])
    with pytest.raises(geon.GuardError):
        run({"x": np.ones((3, 2)), "y": np.ones((4, 2))}, [z])
