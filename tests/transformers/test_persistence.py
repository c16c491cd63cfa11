"""save and restore: round trips through transformers and processes; what does not fit."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import geon
from geon.errors import ArgumentError, CheckpointError

C3 = geon.Axis("C", 3)
N2 = geon.Axis("N", 2)


def keys(path):
    with safe_open(path, framework="numpy") as file:
        return sorted(file.keys())


class Model:
    """Two named weights, an unnamed counter, a stream and a temporary, with a training step."""

    def __init__(self, transformer):
        self.stream = geon.Random(11, name="dropout")
        self.w = geon.Variable(
            axes=[C3, N2], initial_value=geon.Random(3, name="first").normal([C3, N2]), name="w"
        )
        self.b = geon.Variable(axes=C3, initial_value=0, name="b")
        self.count = geon.persistent_tensor(initial_value=0, dtype="int64")
        self.seen = geon.temporary_tensor(axes=C3, initial_value=0, name="seen")
        x = geon.placeholder(axes=N2)
        y = geon.dot(self.w, x) * self.stream.bernoulli([C3], 0.5) + self.b
        loss = geon.sum(y * y)
        updates = [geon.assign(v, v - 0.1 * geon.deriv(loss, v)) for v in loss.variables()]
        updates += [geon.assign(self.count, self.count + 1), geon.assign(self.seen, y)]
        self.transformer = transformer
        self.step = self.transformer.computation([loss, *updates], x)
        self.variables = [self.w, self.b, self.count, self.stream.counter]

    def run(self, steps):
        return [float(self.step([1, k])[0]) for k in range(steps)]

    def values(self):
        return [self.transformer.get(v) for v in self.variables]


def test_a_round_trip_through_a_second_transformer(make, tmp_path):
    model = Model(make())
    model.run(4)
    model.transformer.save(tmp_path / "file")
    again = Model(make())
    again.transformer.restore(tmp_path / "file")
    for old, new in zip(model.values(), again.values(), strict=True):
        np.testing.assert_array_equal(old, new)
        assert old.dtype == new.dtype


def test_a_resumed_run_continues_with_the_same_draws(make, tmp_path):
    whole = Model(make()).run(9)
    model = Model(make())
    first = model.run(4)
    model.transformer.save(tmp_path / "file")
    again = Model(make())
    again.transformer.restore(tmp_path / "file")
    rest = [float(again.step([1, k])[0]) for k in range(4, 9)]
    assert first + rest == whole
    assert len(set(whole)) > 5


def test_a_second_process_continues_the_run(make, transformer_name, tmp_path):
    source = textwrap.dedent("""
        import sys
        import geon
        from tests.transformers.test_persistence import Model

        name, begun, file, *steps = sys.argv[1:]
        model = Model(geon.make_transformer(name))
        if begun == "continue":
            model.transformer.restore(file)
        for k in map(int, steps):
            print(float(model.step([1, k])[0]).hex())
        model.transformer.save(file)
    """)

    def run(begun, *steps):
        command = [sys.executable, "-c", source, transformer_name, begun, tmp_path / "file", *steps]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [float.fromhex(line) for line in done.stdout.split()]

    assert run("start", "0", "1", "2") + run("continue", "3", "4") == Model(make()).run(5)


def test_a_file_holds_persistent_variables_under_their_names(transformer, tmp_path):
    model = Model(transformer)
    model.run(1)
    transformer.save(tmp_path / "file")
    assert keys(tmp_path / "file") == ["b", "dropout.calls", "first.calls", "variable().0", "w"]


def test_save_initializes(transformer, tmp_path):
    Model(transformer)
    transformer.save(tmp_path / "file")
    assert len(keys(tmp_path / "file")) == 5


def test_save_needs_a_value_for_every_persistent_variable(transformer, tmp_path):
    v = geon.Variable(name="v")
    transformer.computation(geon.assign(v, 1))
    with pytest.raises(ArgumentError, match="v.*no value"):
        transformer.save(tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_temporary_that_has_no_lengths_yet_is_no_obstacle(transformer, tmp_path):
    buffer = geon.temporary_tensor(axes=geon.Axis("T", "T of a temporary"), initial_value=0)
    v = geon.Variable(initial_value=1, name="v")
    transformer.computation([geon.assign(buffer, buffer + 1), v])
    transformer.save(tmp_path / "file")
    assert keys(tmp_path / "file") == ["v"]


def test_a_name_given_later_counts(transformer, tmp_path):
    v = geon.Variable(initial_value=1)
    transformer.get(v)
    v.name = "late"
    transformer.save(tmp_path / "file")
    assert keys(tmp_path / "file") == ["late"]


def test_restore_gives_open_axes_their_lengths(transformer, tmp_path, make):
    C = geon.Axis("C", "C of restore")
    v = geon.Variable(axes=C, initial_value=0, name="v")
    transformer.set(v, [1, 2, 3])
    transformer.save(tmp_path / "file")
    with make() as other:
        other.computation(v + 1)
        other.restore(tmp_path / "file")
        np.testing.assert_array_equal(other.get(v), [1, 2, 3])
        assert other.computation(v * 2)().shape == (3,)


def test_restored_variables_need_no_first_value(transformer, tmp_path, make):
    def refuse(axes):
        raise AssertionError("restored variables are not initialized")

    v = geon.Variable(initial_value=4, name="v")
    transformer.get(v)
    transformer.save(tmp_path / "file")
    with make() as other:
        w = geon.Variable(initial_value=refuse, name="v")
        f = other.computation(w + 1)
        other.restore(tmp_path / "file")
        assert f() == 5


def test_automatic_names_count_within_a_transformer(tmp_path, make):
    def build(transformer, kinds):
        made = [geon.Variable(axes=axes, initial_value=0, dtype=d) for axes, d in kinds]
        for v in made:
            transformer.computation(v)
        return made

    kinds = [([C3], "float32"), ([], "float32"), ([C3], "int32")]
    with make() as one, make() as two:
        build(one, [([], "float32")] * 5)  # of another transformer
        first = build(two, kinds)
        two.set(first[0], [1, 2, 3])
        two.set(first[2], [4, 5, 6])
        two.save(tmp_path / "file")
        assert keys(tmp_path / "file") == ["variable().0", "variable(C).0", "variable(C).1"]
    with make() as three:
        again = build(three, kinds)
        three.restore(tmp_path / "file")
        np.testing.assert_array_equal(three.get(again[2]), [4, 5, 6])


# Refusals ---------------------------------------------------------------------------------------


def metadata_of(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata()


def small(transformer, **options):
    """A transformer with a set weight and a set counter."""
    w = geon.Variable(axes=C3, initial_value=0, name="w")
    n = geon.Variable(initial_value=0, name="n", dtype="int64")
    transformer.computation([w, n])
    transformer.set(w, [1, 2, 3])
    transformer.set(n, 7)
    return w, n


def another(how):
    """A variable like ``w`` that differs in one thing."""
    D = geon.Axis("D", 3)
    forms = {
        "missing": {"name": "v"},
        "axes": {"axes": D},
        "length": {"axes": geon.Axis("C", 4)},
        "dtype": {"dtype": "float64"},
    }
    return geon.Variable(**{"axes": C3, "initial_value": 5, "name": "w", **forms[how]})


@pytest.mark.parametrize(
    "how, words",
    [
        ("missing", ["no entry 'v'", "'w'"]),
        ("axes", ["'w'", "C", "D"]),
        ("length", ["'w'", "3", "4"]),
        ("dtype", ["'w'", "float32", "float64"]),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_a_file_of_another_model(transformer, tmp_path, how, words, begun, make):
    small(transformer)
    transformer.save(tmp_path / "file")
    with make() as other:
        w, n = another(how), geon.Variable(initial_value=1, name="n", dtype="int64")
        other.computation([w, n])
        if begun:
            other.set(n, 3)
        with pytest.raises(CheckpointError) as caught:
            other.restore(tmp_path / "file")
        assert all(word in str(caught.value) for word in words)
        assert "test_persistence.py" in str(caught.value)
        assert other.get(n) == (3 if begun else 1)
        assert (other.get(w) == 5).all()


def test_an_extra_entry(transformer, tmp_path, make):
    small(transformer)
    transformer.save(tmp_path / "file")
    with make() as other:
        n = geon.Variable(initial_value=1, name="n", dtype="int64")
        other.computation(n)
        with pytest.raises(CheckpointError, match="extra entry 'w'"):
            other.restore(tmp_path / "file")
        assert other.get(n) == 1


def test_an_ambiguous_file(transformer, tmp_path):
    a, b = geon.Variable(initial_value=1), geon.Variable(initial_value=2)
    transformer.computation([a, b])
    transformer.save(tmp_path / "file")
    with pytest.raises(CheckpointError, match="ambiguous") as caught:
        transformer.restore(tmp_path / "file")
    assert "variable().0" in str(caught.value)
    assert (transformer.get(a), transformer.get(b)) == (1, 2)


@pytest.mark.parametrize("other", [1.0, np.nan, 2.0, -0.0])
def test_entries_of_one_value_are_not_ambiguous(transformer, tmp_path, make, other):
    """Nothing hangs on whose each is; other bits are another value."""
    first = 0.0 if other == 0 else other if other != 2 else 1.0
    made = [geon.Variable(initial_value=value) for value in (first, other)]
    transformer.computation(made)
    transformer.save(tmp_path / "file")
    with make() as second:
        second.computation(made)
        if other in (2.0, 0.0):
            with pytest.raises(CheckpointError, match="ambiguous"):
                second.restore(tmp_path / "file")
        else:
            second.restore(tmp_path / "file")
            np.testing.assert_array_equal([second.get(v) for v in made], [first, other])


def weights(*names):
    """Two weights, each with first values from a stream of its own, and the streams."""
    streams = [geon.Random(k, name=name) for k, name in enumerate(names)]
    made = zip("ab", streams, strict=True)
    return [geon.Variable([C3], initial_value=s.normal([C3]), name=n) for n, s in made], streams


def test_streams_that_first_values_drew_from_need_no_names(transformer, tmp_path, make):
    made, streams = weights(None, None)
    transformer.computation(made)
    transformer.save(tmp_path / "file")
    with make() as other:
        other.computation(made)
        other.restore(tmp_path / "file")
        for v in made:
            np.testing.assert_array_equal(other.get(v), transformer.get(v))
    transformer.computation(streams[1].normal([C3]))()
    transformer.save(tmp_path / "file")
    with pytest.raises(CheckpointError, match=r"geon.Random\(seed, name=\)") as caught:
        transformer.restore(tmp_path / "file")
    rename = "rename={'random_calls().0': ..., 'random_calls().1': ..., '*': '*'}"
    assert rename in str(caught.value)
    named, _ = weights("r", "s")
    with make() as other:
        other.computation(named)
        names = {"random_calls().0": "r.calls", "random_calls().1": "s.calls", "*": "*"}
        other.restore(tmp_path / "file", rename=names)
        assert [int(other.get(f"{n}.calls")) for n in "rs"] == [0, 1]


def test_files_in_which_streams_were_counted_among_other_variables_are_read(
    transformer, tmp_path, make, monkeypatch
):
    stream, other = geon.Random(3), geon.Variable([], initial_value=2, name=None)
    w = geon.Variable([C3], initial_value=stream.normal([C3]), name="w")
    results = [w + stream.normal([C3]), other + 0]
    f = transformer.computation(results)
    f(), f()
    assert sorted(transformer.values()) == ["random_calls().0", "variable().0", "w"]
    with pytest.raises(ArgumentError, match=r"there are w, random_calls\(\)\.0"):
        transformer.get("v")
    for slot in transformer.state.slots:
        monkeypatch.setattr(slot, "kind", "variable")
    transformer.save(tmp_path / "old")
    assert keys(tmp_path / "old") == ["variable().0", "variable().1", "w"]
    monkeypatch.undo()
    transformer.save(tmp_path / "new")
    wanted = f()
    for name in ("old", "new"):
        with make() as again:
            g = again.computation(results)
            again.restore(tmp_path / name)
            for one, two in zip(g(), wanted, strict=True):
                np.testing.assert_array_equal(one, two)


def test_one_name_twice(transformer, tmp_path):
    made = [geon.Variable(initial_value=1, name="same") for _ in range(2)]
    with pytest.raises(ArgumentError, match="variables of this transformer are named 'same'"):
        transformer.computation(made)
    assert not transformer.computations and not transformer.values()
    made[1].name = "other"
    transformer.computation(made)
    made[1].name = "same"
    with pytest.raises(CheckpointError, match="'same'"):
        transformer.save(tmp_path / "file")


@pytest.mark.parametrize("damage", ["missing", "empty", "text", "cut", "foreign"])
def test_what_is_no_whole_checkpoint(transformer, tmp_path, damage):
    w, n = small(transformer)
    path = tmp_path / "file"
    transformer.save(path)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "foreign":
        save_file({"w": np.zeros(4, np.float32), "n": np.zeros((), np.int64)}, path)
    else:
        path.write_bytes({"empty": b"", "text": b"hello", "cut": content[:-3]}[damage])
    with pytest.raises(CheckpointError):
        transformer.restore(path)
    np.testing.assert_array_equal(transformer.get(w), [1, 2, 3])
    assert transformer.get(n) == 7


def test_open_lengths_of_a_file_are_those_of_its_variables(transformer, tmp_path, make):
    C = geon.Axis("C", "C of each")
    v, w = (geon.Variable(axes=C, initial_value=0, name=name) for name in "vw")
    passing = geon.temporary_tensor(axes=C, initial_value=0, name="passing")
    transformer.computation([v, w])
    transformer.set(v, [1, 2])
    transformer.save(tmp_path / "two")
    with make() as other:
        f = other.computation([v, w, passing])
        other.set(passing, [1, 2, 3])
        other.set(v, [1, 2, 3, 4])
        other.restore(tmp_path / "two")
        np.testing.assert_array_equal(other.get(v), [1, 2])
        with pytest.raises(geon.FeedError, match="is 3 in variable passing.* and 2 in variable v"):
            f()
        other.set(passing, [5, 6])
        np.testing.assert_array_equal(f(), [[1, 2], [0, 0], [5, 6]])


def test_a_file_whose_entries_have_two_lengths(transformer, tmp_path, make):
    C = geon.Axis("C", "C of two lengths")
    v, w = (geon.Variable(axes=C, initial_value=0, name=name) for name in "vw")
    transformer.computation([v, w])
    transformer.set(v, [1, 2])
    transformer.save(tmp_path / "file")
    metadata = metadata_of(tmp_path / "file")
    metadata["entries"] = metadata["entries"].replace(
        '"w": {"axes": [["C", 2]]', '"w": {"axes": [["C", 3]]'
    )
    metadata["version"] = "1"  # such a file has no digest that would tell
    del metadata["digest"]
    arrays = {"v": np.zeros(2, np.float32), "w": np.zeros(3, np.float32)}
    save_file(arrays, tmp_path / "file", metadata)
    with make() as other:
        other.computation([v, w])
        other.restore(tmp_path / "file")
        assert (other.get(v).shape, other.get(w).shape) == ((2,), (3,))
        other.save(tmp_path / "again")


def test_a_file_whose_lengths_of_one_variable_contradict(transformer, tmp_path, make):
    H = geon.Axis("H", "H of restore")
    x = geon.placeholder(axes=H)
    twice = geon.concat([x, x], H).rename({"H": "D"})
    v = geon.Variable(axes=geon.Axes(H, twice.axes), initial_value=0, name="v")
    transformer.set(v, np.zeros((2, 4)))
    with pytest.raises(geon.FeedError, match="shape"):
        transformer.set(v, np.zeros((3, 4)))
    transformer.save(tmp_path / "file")
    metadata = metadata_of(tmp_path / "file")
    metadata["entries"] = metadata["entries"].replace('["D", 4]', '["D", 5]')
    metadata["version"] = "1"  # such a file has no digest that would tell
    del metadata["digest"]
    save_file({"v": np.ones((2, 5), np.float32)}, tmp_path / "file", metadata)
    with pytest.raises(CheckpointError, match=r"variable v.* length 5 for 2\*.*, which is 4"):
        transformer.restore(tmp_path / "file")
    np.testing.assert_array_equal(transformer.get(v), np.zeros((2, 4)))
