"""Data frames: lazy columns against pandas, batches, random orders, images, cursors, prefetch."""

import sys
import time

import numpy as np
import pandas
import PIL.Image
import pytest

import geon
from geon.frontends.nnc.dataframe import DataFrame, Jitter
from geon.frontends.nnc.dataframe.images import read_image, resized


def table(rows, seed=0):
    """The same columns as a frame and as pandas has them."""
    random = np.random.default_rng(seed)
    columns = {
        "x": random.normal(size=rows).astype("float32"),
        "y": random.normal(size=rows),
        "label": random.integers(0, 10, rows),
    }
    return DataFrame.from_array(columns), pandas.DataFrame(columns)


def check_against_pandas(rows, tmp_path):
    """Maps, one-hot columns, group means and CSV files, each by both."""
    frame, known = table(rows)
    frame.map("z", lambda x, y: x * y + 1, "x", "y").one_hot("hot", "label", 10)
    frame.copy_scalar("scalar", "label")
    z, hot, scalar = frame.pull("z", "hot", "scalar")
    assert np.array_equal(z, known.x * known.y + 1)
    assert np.array_equal(hot, pandas.get_dummies(known.label, dtype="float32"))
    assert np.array_equal(scalar[:, 0], known.label.astype("float32"))
    means = frame.sample("mean", np.mean, "y", size=1000).pull("mean")
    assert np.allclose(means, known.y.groupby(np.arange(rows) // 1000).mean(), rtol=1e-12)
    batches = frame.combine("x", "label", size=4096)
    seen = list(batches.iterate("x", "label"))
    assert len(seen) == len(batches) == -(-rows // 4096)
    assert np.array_equal(np.concatenate([x for x, _ in seen]), known.x)
    assert sum(len(label) for _, label in seen) == rows
    file = tmp_path / "table.csv"
    known.to_csv(file, index=False)
    read = DataFrame.from_csv(file, ["label", "y"])
    assert read.names == ("label", "y")
    assert np.array_equal(read.pull("y"), known.y) and np.array_equal(
        read.pull("label"), known.label
    )


def test_a_frame_against_pandas(tmp_path):
    check_against_pandas(12_345, tmp_path)


@pytest.mark.slow
def test_a_million_rows_against_pandas(tmp_path):
    check_against_pandas(1_000_000, tmp_path)


def test_columns_are_pulled_for_asked_rows_alone():
    asked = []

    def source(rows):
        asked.append(rows.tolist())
        return rows * 10

    frame = DataFrame(8).add("a", source).map("b", lambda a: a + 1, "a")
    frame.map("never", lambda a: 1 / 0, "a").make_tuple("pair", "a", "b")
    frame.extract_tuple("second", "pair", 1)
    assert asked == []
    assert frame.pull("second", rows=[5, 2]).tolist() == [51, 21]
    assert asked == [[5, 2]]  # once for a, b, pair and second
    assert frame.pull("b", rows=slice(6, None)).tolist() == [61, 71]


def test_values_are_extracted_from_objects():
    objects = [{"size": k, "name": str(k)} for k in range(3)]
    frame = DataFrame.from_array({"file": objects})
    frame.extract_value("size", "file", "size").extract_value("type", "size", "dtype")
    assert frame.pull("size").tolist() == [0, 1, 2]
    assert frame.pull("type") == [np.dtype("int64")] * 3


def test_batches_of_ragged_rows_are_truncated_and_masked():
    frame = DataFrame.from_array({"length": np.array([2, 3, 1, 4, 2])})
    frame.map("words", lambda n: np.arange(5) < n[:, None], "length")
    batches = frame.combine(size=2)
    batches.truncate("cut", "words", "length").one_squared("mask", "length", 5)
    shapes = [cut.shape for (cut,) in batches.iterate("cut")]
    assert shapes == [(2, 3), (2, 4), (1, 2)]
    (mask,) = batches.iterate("mask").next()
    assert mask.shape == (2, 5, 5) and mask.sum((1, 2)).tolist() == [4, 9]
    rows = frame.truncate("cut", "words", "length").pull("cut")
    assert [len(row) for row in rows] == [2, 3, 1, 4, 2]
    assert len(frame.combine("words", size=2, last="drop")) == 2


def test_shuffles_are_other_orders_and_reach_batches():
    frame, _ = table(100)
    batches = frame.combine("x", size=7)
    orders = [frame.shuffle(seed=3).pull("x").tolist() for _ in range(2)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])
    assert np.concatenate(batches.pull("x")).tolist() == orders[1]
    batches.shuffle()
    assert sorted(np.concatenate(batches.pull("x")).tolist()) == sorted(orders[1])
    again, _ = table(100)
    assert [again.shuffle(seed=3).pull("x").tolist() for _ in range(2)] == orders


def test_an_iterator_has_a_cursor():
    frame, known = table(6)
    rows = frame.iterate("x", "label")
    assert rows.next()[0] == known.x[0] and rows.cursor == 1
    assert rows.peek("y") == (known.y[0],) and rows.cursor == 1
    rows.set_cursor(4)
    assert [label for _, label in rows] == known.label[4:].tolist()
    with pytest.raises(geon.IndexRangeError, match=r"past the last of 6 rows; set_cursor\(0\)"):
        rows.next()
    rows.set_cursor(0)
    with pytest.raises(geon.IndexRangeError, match=r"no current row before next\(\)"):
        rows.peek()
    with pytest.raises(geon.IndexRangeError, match="row 7 of 6 rows; give one from 0 to 6"):
        rows.set_cursor(7)


def test_prefetched_rows_are_the_same_and_follow_the_cursor():
    frame, known = table(20)
    rows = frame.iterate("x", prefetch=3)
    assert [x for (x,) in rows] == known.x.tolist()
    rows.set_cursor(15)
    assert rows.next() == (known.x[15],)
    rows.prefetch(0)
    assert [x for (x,) in rows] == known.x[16:].tolist()


def test_prefetch_hides_a_slow_reader_behind_the_step():
    def read(rows):
        time.sleep(0.005)
        return rows

    frame = DataFrame(40).add("a", read)
    without = time_by_step(frame.iterate("a"))
    assert without > 1.6  # the reader is as slow as the step
    # The best of several: a busy machine may keep the thread from running.
    assert min(time_by_step(frame.iterate("a", prefetch=2)) for _ in range(5)) < 1.2


def time_by_step(rows):
    """The time of a loop with a step of 5 ms for each row, by the time of the steps alone."""
    for _ in range(5):
        rows.next()  # the thread starts, and gets ahead
        time.sleep(0.005)
    begin, steps = time.perf_counter(), 0.0
    for _ in rows:
        started = time.perf_counter()
        time.sleep(0.005)
        steps += time.perf_counter() - started
    return (time.perf_counter() - begin) / steps


def picture(tmp_path, name, shape, seed=0):
    """Write a random image and return its path and pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, shape, "uint8")
    path = tmp_path / name
    PIL.Image.fromarray(pixels[..., 0] if shape[2] == 1 else pixels).save(path)
    return str(path), pixels


def test_images_are_read_and_a_damaged_file_is_named(tmp_path):
    files = [picture(tmp_path, "a.png", (5, 7, 3)), picture(tmp_path, "b.png", (4, 4, 1))]
    frame = DataFrame.from_array({"path": [path for path, _ in files]})
    images = frame.read_image("image", "path").pull("image")
    for image, (_, pixels) in zip(images, files, strict=True):
        assert np.array_equal(image, pixels)
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:40])
    with pytest.raises(geon.FeedError, match=r"a.png cannot be read as an image.*write the file"):
        frame.pull("image")


def test_jitter_is_random_by_turn_and_the_same_for_a_seed(tmp_path):
    _, pixels = picture(tmp_path, "a.png", (40, 30, 3))
    frame = DataFrame.from_array({"image": np.stack([pixels, pixels])})
    jitter = Jitter(
        (24, 24), (28, 32), 0.2, (2, 2), True, 0.3, 0.3, 0.3, 0.1, (127.5,) * 3, (50.0,) * 3
    )
    frame.image_random_jitter("out", "image", jitter, seed=1)
    first, second = frame.pull("out")
    assert first.shape == (24, 24, 3) and first.dtype == np.float32
    assert not np.array_equal(first, second)
    assert np.array_equal(frame.pull("out", rows=[1])[0], second)
    frame.turn += 1
    assert not np.array_equal(frame.pull("out")[0], first)


def test_jitter_without_changes_crops_and_normalises():
    image = np.arange(36, dtype="uint8").reshape(6, 6, 1)
    out = Jitter((2, 8), mean=(10.0,), std=(2.0,))(np.random.default_rng(0), image)
    assert np.array_equal(out[:, 1:7], (image[2:4] - 10.0) / 2)
    assert (out[:, [0, 7]] == -5).all()


def test_resizing_keeps_linear_ramps():
    ramp = np.broadcast_to(np.arange(8.0, dtype="float32")[:, None, None], (8, 4, 1))
    half = resized(ramp, 4, 2)
    assert np.allclose(half[:, 0, 0], [0.5, 2.5, 4.5, 6.5])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda f: f.map("z", abs, "w"), geon.ArgumentError, "no column 'w'; it has 'x', 'y'"),
        (lambda f: f.pull("w"), geon.ArgumentError, "DataFrame.pull.*no column 'w'"),
        (lambda f: f.iterate("x", "w"), geon.ArgumentError, "no column 'w'"),
        (lambda f: f.pull("x", rows=[99]), geon.IndexRangeError, "rows 99 to 99 of a frame of 5"),
        (lambda f: f.combine("x", size=0), geon.ArgumentError, "size=0; give an integer of at"),
        (lambda f: f.combine("x", size=2, last="cut"), geon.ArgumentError, "'keep' or 'drop'"),
        (
            lambda f: f.one_hot("hot", "label", 2).pull("hot"),
            geon.IndexRangeError,
            r"in row \d, and range=2 has 0 to 1",
        ),
        (
            lambda f: f.map("short", lambda x: x[:2], "x").pull("short"),
            geon.FeedError,
            "'short' has 2 values for 5 rows",
        ),
        (
            lambda f: DataFrame.from_array({"a": [1], "b": [1, 2]}),
            geon.ArgumentError,
            "{'a': 1, 'b': 2}; give columns of equal lengths",
        ),
        (lambda f: DataFrame.from_csv("no.csv"), geon.FeedError, "no.csv cannot be read as CSV"),
        (lambda f: Jitter((0, 2)), geon.ArgumentError, "lengths of at least 1"),
        (lambda f: Jitter((2, 2), contrast=2), geon.ArgumentError, "contrast=2; give a number"),
    ],
)
def test_errors_say_what_is_wrong(make, error, match):
    with pytest.raises(error, match=match):
        make(table(5)[0])


def test_a_missing_column_of_a_file_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(geon.ArgumentError, match="no column 'c'; it has 'a', 'b'"):
        DataFrame.from_csv(tmp_path / "t.csv", ["c"])


@pytest.mark.parametrize(
    ("package", "name", "use"),
    [
        ("pandas", "pandas", lambda: DataFrame.from_csv("t.csv")),
        ("PIL", "Pillow", lambda: read_image("a.png")),
    ],
)
def test_missing_packages_are_named_with_their_cure(package, name, use, monkeypatch):
    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(geon.UnavailableError, match=f"package {name}; pip install {name}"):
        use()
