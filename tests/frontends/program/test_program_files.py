"""Programs in files: protobuf and JSON, prune, clone, merge, inference models, damaged files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.frontends import program as fluid
from geon.frontends.program import layers, optimizers, protobuf
from geon.frontends.program.description import describe_program, program_from

FORMS = ["protobuf", "json"]


def network():
    """A program with a loop, parameters, running statistics and an optimiser."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x, y = layers.data("x", [4]), layers.data("y", [1])
        hidden = layers.batch_norm(layers.fc(x, 6), act="relu")
        hidden = layers.dropout(hidden, dropout_prob=0.5)
        i, n = (layers.fill_constant(shape=[1], value=v, dtype="int64") for v in (0, 3))
        cond = layers.less_than(i, n)
        total = layers.assign(hidden)
        with layers.While(cond, max_steps=4).block():
            layers.elementwise_add(total, hidden, Out=total)
            layers.increment(i, step=1.0, Out=i)
            layers.less_than(i, n, Out=cond)
        prediction = layers.fc(total, 1)
        loss = layers.mean(layers.square_error_cost(prediction, y))
        rate = optimizers.exponential_decay(learning_rate=0.1, decay_steps=10, decay_rate=0.5)
        optimizers.Adam(rate).minimize(loss, startup)
    return main, startup, prediction, loss


def feed(count=5):
    random = np.random.default_rng(0)
    return {"x": random.normal(size=(count, 4)), "y": random.normal(size=(count, 1))}


def run(program, fetch, scope, data=None):
    executor = fluid.Executor(fluid.CPUPlace("numpy"))
    return executor.run(program, feed() if data is None else data, fetch, scope)


def started(startup):
    scope = fluid.Scope()
    run(startup, [], scope, {})
    return scope


@pytest.mark.parametrize("form", FORMS)
def test_a_program_that_is_read_is_the_one_that_was_written(form, tmp_path):
    main, startup, prediction, loss = network()
    path = tmp_path / {"protobuf": "main.pb", "json": "main.json"}[form]
    fluid.save_program(main, path)
    again = fluid.load_program(path)
    assert str(again) == str(main)
    assert describe_program(again) == describe_program(main)
    assert fluid.serialize(again, form) == path.read_bytes()
    results = [
        [run(program, [loss.name], scope)[0] for _ in range(2)]
        for program, scope in ((main, started(startup)), (again, started(startup)))
    ]
    np.testing.assert_array_equal(*results)
    assert describe_program(again)["blocks"][0]["ops"][0]["file"] == __file__


def test_the_schema_file_is_that_of_the_messages():
    path = Path(protobuf.__file__).with_name("program.proto")
    assert path.read_text() == protobuf.schema_text()


def test_prune_and_clone_for_test():
    main, startup, prediction, loss = network()
    test = fluid.clone(main, for_test=True)
    types = [op.type for op in test.global_block().ops]
    assert not [t for t in types if t.endswith("_grad") or t in ("adam", "exponential_decay")]
    assert all(op.attributes.get("is_test", True) for op in test.global_block().ops)
    assert len(fluid.clone(main).global_block().ops) == len(main.global_block().ops)
    small = fluid.prune(test, [prediction.name])
    assert "y" not in small.global_block().variables
    assert len(small.global_block().ops) == len(types) - 3  # the loss and its seed
    scope = started(startup)
    (first,) = run(test, [prediction.name], scope)
    np.testing.assert_array_equal(
        run(small, [prediction.name], scope, {"x": feed()["x"]})[0], first
    )
    np.testing.assert_array_equal(run(test, [prediction.name], scope)[0], first)


def test_prune_keeps_the_gradient_of_a_loop_with_its_block():
    main, startup, _, _ = network()
    (gradient,) = [n for n in main.global_block().names if n.startswith("fc.w_0@GRAD")][:1]
    small = fluid.prune(main, [gradient])
    types = [op.type for op in small.global_block().ops]
    assert {"while", "while_grad"} <= set(types) and "adam" not in types
    assert len(small.blocks) == 2
    found = [run(program, [gradient], started(startup))[0] for program in (small, main)]
    np.testing.assert_array_equal(*found)


def test_merge_runs_programs_one_after_another():
    programs = []
    for factor in (2.0, 5.0):
        program = fluid.Program()
        with fluid.program_guard(program):
            total = program.global_block().create_var("total", [2], persistable=True)
            x = layers.data("x", [2], append_batch_size=False)
            grown = layers.elementwise_add(total, layers.scale(x, scale=factor))
            layers.assign(grown, Out=total)
        programs.append(program)
    merged = fluid.merge(*programs)
    scope = fluid.Scope()
    scope.var("total").set(np.array([1, 1], np.float32))
    run(merged, [], scope, {"x": [1, 10]})
    np.testing.assert_array_equal(scope.find_var("total").get().array, [8, 71])
    other = fluid.Program()
    other.global_block().create_var("total", [3], persistable=True)
    other.global_block().append_op("scale", {"X": "total"}, {"Out": "out"})
    with pytest.raises(fluid.ProgramError, match="'total' is .* in one program and .* in another"):
        fluid.merge(programs[0], other)


@pytest.mark.parametrize("form", FORMS)
def test_an_inference_model(form, tmp_path):
    main, startup, prediction, loss = network()
    scope = started(startup)
    run(main, [], scope)
    (expected,) = run(fluid.clone(main, for_test=True), [prediction.name], scope)
    fluid.save_inference_model(tmp_path, ["x"], [prediction], main, scope, form=form)
    fresh = fluid.Scope()
    program, feeds, targets = fluid.load_inference_model(tmp_path, fresh)
    assert feeds == ["x"] and [t.name for t in targets] == [prediction.name]
    (found,) = run(program, targets, fresh, {"x": feed()["x"]})
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(geon.ArgumentError, match="the targets need the data x, and x, y are given"):
        fluid.save_inference_model(tmp_path, ["x", "y"], [prediction], main, scope)


def looping_network():
    """Words summed by a loop that draws, branches, and embeds with a gradient of its own."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        words = layers.data("x", [4, 3], dtype="int64", append_batch_size=False)
        step = layers.fill_constant(shape=[1], dtype="int64")
        total = layers.fill_constant(shape=[3, 2])
        cond = layers.less_than(step, layers.fill_constant(shape=[1], value=4.0, dtype="int64"))
        with layers.While(cond, max_steps=4).block():
            row = layers.embedding(layers.gather(words, step), [5, 2], is_sparse=True)
            kept = layers.dropout(layers.reshape(row, shape=[3, 2]), dropout_prob=0.5)
            layers.elementwise_add(total, kept, Out=total)
            layers.elementwise_add(total, layers.uniform_random(shape=[3, 2]), Out=total)
            with layers.ConditionalBlock(cond).block():
                layers.scale(total, scale=2.0, Out=total)
            layers.increment(step, Out=step)
            limit = layers.fill_constant(shape=[1], value=4.0, dtype="int64")
            layers.less_than(step, limit, Out=cond)
        out = layers.reduce_sum(total, dim=[1], keep_dim=True)
        optimizers.SGD(0.1).minimize(layers.mean(out))
    return main, startup, out


@pytest.mark.parametrize("make", [network, looping_network])
def test_inference_imports_no_code_of_gradients(make, tmp_path):
    main, startup, prediction, *_ = make()
    fluid.save_inference_model(tmp_path, ["x"], [prediction], main, started(startup))
    code = f"""
import sys
import numpy as np
from geon.frontends import program as fluid
program, _, targets = fluid.load_inference_model({str(tmp_path)!r})
executor = fluid.Executor(fluid.CPUPlace("numpy"))
x = program.global_block().var("x")
data = np.ones([2 if n < 0 else n for n in x.shape], x.dtype)
assert executor.run(program, {{"x": data}}, targets)[0].shape[1] == 1
package = "geon.frontends.program."
training = ["backward", "gradients", "row_reads", "optimizers", "layers", "creators"]
loaded = [name for name in training if package + name in sys.modules]
loaded += [name for name in sys.modules if name.startswith("geon.op_graph.autodiff")]
loaded += [name for name in sys.modules if name.startswith("geon.") and "deriv" in name]
loaded += [name for name in sys.modules if name.startswith("geon.frontends.neon")]
# Names of rows, which are there for all primitives, and a plan's values that can be derived.
others = (".gamma_derivative", ".von_mises_derivative", ".derivable_values")
assert not [name for name in loaded if not name.endswith(others)], loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(geon.__file__).parent.parent)


def test_parameters_in_files(tmp_path):
    main, startup, prediction, _ = network()
    scope, path = started(startup), tmp_path / "parameters.safetensors"
    fluid.save_persistables(path, main, scope)
    fresh = fluid.Scope()
    fluid.load_persistables(path, main, fresh)
    for name in scope.local_names():
        value = scope.find_var(name).get()
        if isinstance(value, int):
            continue
        np.testing.assert_array_equal(fresh.find_var(name).get().array, value.array)
    other = fluid.Program()
    other.global_block().create_var("more", [2], persistable=True)
    with pytest.raises(geon.CheckpointError, match="lack 'more'"):
        fluid.load_persistables(path, other, fresh)
    wrong = fluid.Program()
    wrong.global_block().create_var("fc.w_0", [2, 2], persistable=True)
    with pytest.raises(
        geon.CheckpointError, match=r"'fc.w_0' as \(4, 6\) float32; the program has"
    ):
        fluid.load_persistables(path, wrong, fresh)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(
        geon.CheckpointError, match="is no safetensors file, or it is cut off or damaged"
    ):
        fluid.load_persistables(path, main, fresh)


def test_parameters_of_every_dtype(tmp_path):
    kept, startup = fluid.Program(), fluid.Program()
    dtypes = ("bfloat16", "float16", "complex64", "int8", "bool", "float64")
    for dtype in dtypes:
        for program in (kept, startup):
            program.global_block().create_var(dtype, [2], dtype, persistable=True)
        attributes = {"shape": [2], "value": 1.5, "dtype": dtype}
        startup.global_block().append_op("fill_constant", {}, {"Out": dtype}, attributes)
    scope, fresh, path = started(startup), fluid.Scope(), tmp_path / "parameters.safetensors"
    fluid.save_persistables(path, kept, scope)
    fluid.load_persistables(path, kept, fresh)
    for dtype in dtypes:
        array = fresh.find_var(dtype).get().array
        assert array.dtype.name == dtype
        np.testing.assert_array_equal(array, np.full(2, 1.5).astype(array.dtype))


# Damaged and hostile files ------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_damaged_bytes_raise_an_error_of_ours(form):
    data = fluid.serialize(network()[0], form)
    random, raised = np.random.default_rng(0), 0
    for _ in range(150):
        changed = bytearray(data)
        for place in random.integers(0, len(data), random.integers(1, 4)):
            changed[place] ^= 1 << random.integers(0, 8)
        # What gives the same program is no damage: a bit changed twice, a digest in other letters.
        try:
            program = fluid.deserialize(bytes(changed))
        except fluid.ProgramFileError:
            raised += 1
        else:
            assert fluid.serialize(program, form) == data
    assert raised > 140
    for length in [*range(0, len(data), len(data) // 40), len(data) - 1]:
        with pytest.raises(fluid.ProgramFileError):
            fluid.deserialize(data[:length])


def op_of(desc, type):
    return next(op for op in desc["blocks"][0]["ops"] if op["type"] == type)


def slot(op, role, name):
    return next(each for each in op[role] if each["slot"] == name)


def cycle(desc):
    mul = op_of(desc, "mul")
    slot(mul, "inputs", "X")["values"] = slot(mul, "outputs", "Out")["values"]


def written_twice(desc):
    mul = op_of(desc, "mul")
    slot(mul, "outputs", "Out")["values"] = slot(mul, "inputs", "X")["values"]


def deep(desc):
    desc["blocks"] += [{**desc["blocks"][1], "parent": k, "ops": []} for k in range(120)]


def attribute(op, name, /, **changes):
    def change(desc):
        found = next(a for a in op_of(desc, op)["attributes"] if a["name"] == name)
        found.update(changes)

    return change


def put(*path):
    *keys, value = path

    def change(desc):
        place = desc
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


SPEC = ("values", 0, "spec")
HOSTILE = {
    "no fields": (lambda desc: desc.clear(), "has not the fields"),
    "another field": (put("more", 1), "has not the fields"),
    "a newer version": (put("version", 99), "upgrade geon"),
    "a negative version": (put("version", -1), "its version is -1"),
    "a text as blocks": (put("blocks", "x"), "no list"),
    "a text as a version": (put("version", "1"), "no int"),
    "a bool as a version": (put("version", True), "no int"),
    "a cycle": (cycle, "which nothing before it in its block writes"),
    "a value written twice": (written_twice, "again"),
    "a value that is none": (put("blocks", 0, "results", [10**9]), "which nothing before it"),
    "a block in itself": (put("blocks", 1, "parent", 1), "which is none before it"),
    "a block of nobody": (
        lambda d: d["blocks"].append(
            {
                **d["blocks"][1],
                "parent": 0,
                "ops": [],
                "parameters": [],
                "names": [],
                "variables": [],
                "results": [],
            }
        ),
        "belongs to no operator",
    ),
    "sixty blocks inside each other": (deep, "more than 50 blocks"),
    "no block": (put("blocks", []), "it has no block"),
    "an unknown operator": (
        put("blocks", 0, "ops", 0, "type", "system"),
        "'system' is not registered",
    ),
    "a long type": (put("blocks", 0, "ops", 0, "type", "x" + "_grad" * 1000), "characters"),
    "a missing slot": (lambda d: op_of(d, "mul")["inputs"].pop(), "needs the input"),
    "a wrong attribute": (
        attribute("mul", "x_num_col_dims", value="a"),
        "is refused; give int",
    ),
    "an attribute without value": (
        attribute("mul", "x_num_col_dims", value=[]),
        "is refused; give int",
    ),
    "a block of another operator": (attribute("while", "sub_block", value=0), "none of its own"),
    "an absurd length": (put(*SPEC, "shape", [1 << 60]), "a length is"),
    "a negative length": (put(*SPEC, "shape", [-5]), "a length is -5"),
    "an expression that is none": (put(*SPEC, "shape", [["//", 1]]), "expected"),
    "many dimensions": (put(*SPEC, "shape", [1] * 100), "100 dimensions"),
    "another dtype": (put(*SPEC, "dtype", "object"), "dtype 'object'"),
    "a name that is no variable": (put("blocks", 0, "names", 0, "name", "ghost"), "ghost"),
    "a declaration twice": (
        lambda d: d["blocks"][0]["variables"].append(d["blocks"][0]["variables"][0]),
        "declared twice",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_programs_are_refused(case):
    change, message = HOSTILE[case]
    desc = json.loads(fluid.serialize(network()[0], "json"))
    change(desc)
    with pytest.raises(fluid.ProgramFileError, match=message):
        program_from(desc)


def test_json_that_was_edited_is_read_without_a_digest():
    desc = json.loads(fluid.serialize(network()[0], "json"))
    next(a for a in op_of(desc, "dropout")["attributes"] if a["name"] == "is_test")["value"] = True
    with pytest.raises(fluid.ProgramFileError, match="the digest .* is not that of its contents"):
        fluid.deserialize(json.dumps(desc).encode())
    program = fluid.deserialize(json.dumps({**desc, "digest": ""}).encode())
    assert [op for op in program.global_block().ops if op.type == "dropout"][0].attributes[
        "is_test"
    ]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(fluid.ProgramFileError, match="cannot be read: No such file"):
        fluid.load_program(tmp_path / "none.pb")
    with pytest.raises(geon.ArgumentError, match="form='xml' is none of protobuf, json"):
        fluid.serialize(fluid.Program(), "xml")
