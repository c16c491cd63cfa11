"""Data: shards, files, iterables, threads, changed images, and sequences in buckets."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import augment
from tests.places import placed

from .test_training import Interrupt, batches, examples, model, same


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "geon prefetch"]


def alike(one, other):
    """Two lists of batches are equal."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


# Arrays and files ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("last", ["keep", "drop"])
@pytest.mark.parametrize(("length", "parts"), [(50, 3), (51, 3), (7, 8), (50, 1)])
def test_shards_share_nothing_and_are_as_long(seed, last, length, parts):
    rows = np.arange(length)
    seen, counts = [], set()
    for part in range(parts):
        data = neon.Batches(rows, size=4, seed=seed, last=last, shard=(part, parts))
        found = list(data.epoch(2))
        assert len(found) == len(data)
        counts.add(tuple(len(batch[0]) for batch in found))
        seen += [number for batch in found for number in batch[0].tolist()]
        for start in range(len(found) + 1):
            alike(list(data.epoch(2, start)), found[start:])
    assert len(counts) == 1 and len(set(seen)) == len(seen)
    if last == "keep":
        assert len(seen) == length // parts * parts


@pytest.mark.parametrize("shard", [(0, 1), (1, 2)])
@pytest.mark.parametrize("seed", [None, 3])
def test_hdf5_files(tmp_path, seed, shard):
    h5py = pytest.importorskip("h5py")
    points, classes = examples()
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["points"], file["classes"] = points, classes
    with h5py.File(tmp_path / "data.h5") as file:
        stored = neon.Batches(file["points"], file["classes"], size=16, seed=seed, shard=shard)
        plain = neon.Batches(points, classes, size=16, seed=seed, shard=shard)
        alike(list(stored.epoch(1)), list(plain.epoch(1)))
        alike(list(stored.epoch(1, 1)), list(plain.epoch(1, 1)))


def test_memory_mapped_files_in_any_order(tmp_path):
    points, _ = examples()
    np.save(tmp_path / "points.npy", points)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    alike(
        list(neon.Batches(mapped, size=7, seed=3).epoch(0)),
        list(neon.Batches(points, size=7, seed=3).epoch(0)),
    )


def test_any_iterable(make):
    listed, streamed = model(make()), model(make())
    given = list(batches().epoch(0))
    listed.fit(given, 2, validation=given)
    run = streamed.fit(neon.Stream(lambda epoch: iter(given)), 2, validation=tuple(given))
    same(listed.transformer, streamed.transformer)
    assert run.batches is None and listed.evaluate(given) == streamed.evaluate(given)


def test_what_can_be_gone_through_once_is_refused(transformer):
    made = model(transformer)
    for data in (iter([]), (batch for batch in []), 3):
        with pytest.raises(geon.ArgumentError, match=r"neon.Stream\(make\)"):
            made.fit(data, 1)
        with pytest.raises(geon.ArgumentError, match=r"neon.Stream\(make\)"):
            made.evaluate(data)


# Threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [1, 2, 50])
def test_prefetched_batches_are_the_same(ahead):
    data = neon.Prefetch(batches(), ahead)
    assert len(data) == len(batches())
    for start in range(5):
        alike(list(data.epoch(1, start)), list(batches().epoch(1, start)))
    assert not threads()
    with pytest.raises(TypeError):
        len(neon.Prefetch(neon.Stream(lambda epoch: [])))


def test_as_many_batches_as_asked_are_made_before():
    made = []

    def make(epoch):
        for k in range(100):
            made.append(k)
            yield (k,)

    found = neon.Prefetch(neon.Stream(make), 3).epoch(0)
    assert not threads()  # nobody asked yet
    assert next(found) == (0,)
    deadline = time.monotonic() + 10
    while len(made) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(made) == 5  # one given, three in the queue, one that waits for a place
    found.close()
    assert not threads() and len(made) == 5


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_batches_made_in_one_memory_are_told_apart(ahead):
    def made(number):
        memory = np.zeros(3)
        for k in range(6):
            memory[:] = k
            yield memory, "a text", np.full(2, k)

    whole = [[batch[0].copy(), *batch[1:]] for batch in neon.Stream(made).epoch(0)]
    found = neon.Prefetch(neon.Stream(made), ahead).epoch(0)
    alike([(time.sleep(0.01), *batch)[1:] for batch in found], whole)
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    ((kept,),) = neon.Prefetch([(masked,)]).epoch(0)
    assert isinstance(kept, np.ma.MaskedArray)  # which the model refuses


def test_an_error_of_the_thread_is_raised_where_its_batch_is_asked_for(transformer):
    def make(epoch):
        yield from list(batches().epoch(epoch))[:2]
        raise OSError("the disk is gone")

    made = model(transformer)
    with pytest.raises(OSError, match="gone") as error:
        made.fit(neon.Prefetch(neon.Stream(make)), 1)
    assert any(frame.name == "make" for frame in error.traceback)
    assert made.reached()[1] == 2
    assert not threads()


def test_an_error_before_the_first_batch():
    def make(epoch):
        raise OSError("no such disk")

    with pytest.raises(OSError, match="no such"):
        list(neon.Prefetch(neon.Stream(make)).epoch(0))
    assert not threads()


@pytest.mark.parametrize("count", [1, 3, 6])
def test_a_run_on_prefetched_changed_data_goes_on_bit_for_bit(make, tmp_path, count):
    def fit(*callbacks, **options):
        data = neon.Prefetch(neon.Augmented(batches(), [augment.Noise(0.1)], seed=5))
        made = model(make())
        made.fit(data, 3, callbacks=[*callbacks, neon.Checkpoints(tmp_path)], **options)
        return made.transformer

    whole = fit()
    fit(Interrupt(count))
    assert not threads()
    same(whole, fit(resume=tmp_path / "interrupted.safetensors"))


def test_ctrl_c_while_a_batch_is_waited_for(transformer):
    def make(epoch):
        yield from batches().epoch(epoch)
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
        time.sleep(0.5)
        yield from batches().epoch(epoch)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run = model(transformer).fit(neon.Prefetch(neon.Stream(make)), 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.interrupted and run.batch == 4
    assert not threads()


@pytest.mark.parametrize("ahead", [0, 1.0])
def test_no_batch_ahead_is_refused(ahead):
    with pytest.raises(geon.ArgumentError, match=f"ahead={ahead}"):
        neon.Prefetch(batches(), ahead)


# Changed images --------------------------------------------------------------------------------

IMAGES = np.arange(5 * 6 * 7 * 2, dtype="float32").reshape(5, 6, 7, 2)


def changed(change, array=IMAGES, seed=0):
    return change(np.random.default_rng(seed), array)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_flip(dim):
    kept = IMAGES.copy()
    flipped = 0
    for seed in range(40):
        for one, other in zip(changed(augment.Flip(dim), seed=seed), IMAGES, strict=True):
            turned = np.array_equal(one, np.flip(other, dim - 1))
            assert turned or np.array_equal(one, other)
            flipped += turned
    assert 70 <= flipped <= 130
    np.testing.assert_array_equal(IMAGES, kept)
    np.testing.assert_array_equal(changed(augment.Flip(dim, 1.0)), np.flip(IMAGES, dim))
    np.testing.assert_array_equal(changed(augment.Flip(dim, 0.0)), IMAGES)


@pytest.mark.parametrize("sizes", [{1: 4}, {2: 3}, {1: 6, 2: 7}, {2: 1, 1: 2}, {3: 1, 1: 5}])
def test_crop(sizes):
    places = set()
    shape = [sizes.get(dim, size) for dim, size in enumerate(IMAGES.shape)]
    for seed in range(60):
        found = changed(augment.Crop(sizes), seed=seed)
        assert list(found.shape) == shape
        for one, other in zip(found, IMAGES, strict=True):
            begins = np.argwhere(other == one[0, 0, 0])[0]
            ends = begins + one.shape
            part = other[tuple(slice(b, e) for b, e in zip(begins, ends, strict=True))]
            np.testing.assert_array_equal(one, part)
            places.add(tuple(begins))
    rooms = [IMAGES.shape[dim] - size + 1 for dim, size in sizes.items()]
    assert len(places) == np.prod(rooms)
    middle = changed(augment.Crop(sizes, middle=True))
    where = [slice((have - size) // 2, (have - size) // 2 + size)
             for have, size in zip(IMAGES.shape, shape, strict=True)]  # fmt: skip
    np.testing.assert_array_equal(middle, IMAGES[tuple(where)])


def test_pad():
    found = changed(augment.Pad({1: 2, 2: 1}, value=-1))
    assert found.shape == (5, 10, 9, 2)
    np.testing.assert_array_equal(found[:, 2:-2, 1:-1], IMAGES)
    assert (found[:, :2] == -1).all() and (found[:, :, -1] == -1).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_noise(dtype):
    found = changed(augment.Noise(0.5), np.full((10, 1000), 3, dtype))
    assert found.dtype == dtype
    assert found.mean() == pytest.approx(3, abs=0.02) and found.std() == pytest.approx(
        0.5, abs=0.02
    )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (augment.Flip(0), "Flip: dimension 0"),
        (augment.Flip(4), "Flip: dimension 4"),
        (augment.Crop({1: 7}), "length 7 and has 6"),
        (augment.Crop({1: 0}), "length 0 and has 6"),
        (augment.Pad({-1: 2}), "Pad: dimension -1"),
    ],
    ids=["batch", "none", "long", "empty", "negative"],
)
def test_changes_that_do_not_fit_are_refused(change, what):
    with pytest.raises(geon.ArgumentError, match=placed(what)):
        changed(change)


@pytest.mark.parametrize(
    ("value", "dtype"), [(-1, "uint8"), (0.5, "int64"), (256, "uint8"), (2, "bool")]
)
def test_padding_that_a_dtype_does_not_hold_is_refused(value, dtype):
    change = augment.Pad({1: 1}, value=value)
    with pytest.raises(geon.ArgumentError, match=placed(f"Pad: value={value} is ")):
        change(None, np.zeros((1, 1), dtype))
    np.testing.assert_array_equal(change(None, np.zeros((1, 1))), [[value, 0, value]])


def test_a_column_of_numbers_is_an_array():
    with pytest.raises(geon.ArgumentError, match="example 0 of column 1 is 3, and no sequence"):
        neon.Buckets([[1, 2], [3]], [3, 4], size=2)
    (batch,) = neon.Buckets([[1, 2], [3]], np.array([3, 4]), size=2).epoch(0)
    np.testing.assert_array_equal(batch[2], [3, 4])


def test_noise_is_for_floats():
    with pytest.raises(geon.ArgumentError, match="give one of floats"):
        changed(augment.Noise(1.0), np.zeros((2, 2), "uint8"))


def test_what_is_drawn_depends_on_seed_epoch_and_batch():
    images = np.zeros((8, 3), "float32")
    names = np.arange(8)

    def noised(seed, epoch, start=0):
        data = neon.Augmented(
            neon.Batches(names, images, size=2), [augment.Noise(1.0)], seed=seed, part=1
        )
        assert len(data) == 4
        return list(data.epoch(epoch, start))

    alike(noised(1, 0), noised(1, 0))
    alike(noised(1, 0, 2), noised(1, 0)[2:])
    np.testing.assert_array_equal(np.concatenate([n for n, _ in noised(1, 0)]), names)
    drawn = [b.tobytes() for s in (1, 2) for e in (0, 1) for _, b in noised(s, e)]
    assert len(set(drawn)) == len(drawn)


# Sequences -------------------------------------------------------------------------------------


def sequences(count=40, seed=0):
    """Words and tags of various lengths, and a class for each."""
    random = np.random.default_rng(seed)
    words = [random.integers(1, 9, size=n) for n in random.integers(0, 20, size=count)]
    words[3] = words[3][:0]
    return words, [word * 0.5 for word in words], np.arange(count)


@pytest.mark.parametrize("seed", [None, 4])
@pytest.mark.parametrize("edges", [(), (5, 10), (10, 5, 15)])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_buckets(seed, edges, size):
    words, tags, classes = sequences()
    data = neon.Buckets(words, tags, classes, size=size, edges=edges, seed=seed, pad=-1)
    found = list(data.epoch(2))
    assert len(found) == len(data)
    for word, mask, tag, number in found:
        assert word.shape == mask.shape == tag.shape == (len(number), mask.shape[1])
        assert len(number) <= size and mask.any(0).all()
        lengths = [len(words[k]) for k in number]
        assert len({sum(length >= edge for edge in edges) for length in lengths}) == 1
        for row, k in enumerate(number):
            np.testing.assert_array_equal(word[row][mask[row]], words[k])
            np.testing.assert_array_equal(tag[row][mask[row]], tags[k])
            assert mask[row, : len(words[k])].all() and not mask[row, len(words[k]) :].any()
        assert (word[~mask] == -1).all() and (tag[~mask] == -1).all()
    numbers = np.concatenate([number for *_, number in found])
    assert sorted(numbers) == list(range(40))
    for start in range(len(found) + 1):
        alike(list(data.epoch(2, start)), found[start:])
    again = np.concatenate([number for *_, number in data.epoch(3)])
    assert np.array_equal(again, numbers) == (seed is None)


def test_sequences_of_vectors():
    data = neon.Buckets([np.ones((2, 3)), np.ones((1, 3))], size=2)
    ((found, mask),) = data.epoch(0)
    np.testing.assert_array_equal(found.sum(-1), [[3, 3], [3, 0]])
    assert mask.tolist() == [[True, True], [True, False]]


def test_sequences_that_do_not_fit_are_refused():
    words = [np.arange(2), np.arange(3)]
    for columns, options, what in (
        ((words, [np.arange(2)]), {"size": 2}, "column 1 has 1 examples and column 0 has 2"),
        ((words, [np.arange(2)] * 2), {"size": 2}, "example 1 has length 2 in column 1 and 3"),
        ((np.ones((2, 2)),), {"size": 2}, "list of sequences"),
        ((), {"size": 2}, "list of sequences"),
        ((words,), {"size": 0}, "size=0"),
    ):
        with pytest.raises(geon.ArgumentError, match=placed(what)):
            neon.Buckets(*columns, **options)


def test_shards_that_are_none_are_refused():
    for shard in ((1, 1), (-1, 2), (0, 0)):
        with pytest.raises(geon.ArgumentError, match="0 <= k < n"):
            neon.Batches(np.arange(3), size=1, shard=shard)


@pytest.mark.parametrize("seed", [None, 0])
def test_lists_are_arrays(seed):
    given = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 2]
    as_lists = list(neon.Batches(*given, size=2, seed=seed).epoch(0))
    as_arrays = list(neon.Batches(*map(np.array, given), size=2, seed=seed).epoch(0))
    for one, other in zip(as_lists, as_arrays, strict=True):
        for array, wanted in zip(one, other, strict=True):
            np.testing.assert_array_equal(array, wanted)


def test_a_column_has_one_dtype_in_all_batches():
    """NumPy takes an empty list for one of floats."""
    for number in range(3):
        for words, mask in neon.Buckets([[1, 2], [], [3], []], size=2, seed=0).epoch(number):
            assert words.dtype == np.int64 and words.shape == mask.shape
    ((empty, _),) = neon.Buckets([[], []], size=2).epoch(0)
    assert empty.shape == (2, 0)
    rows = [np.ones((2, 3), "float32"), np.ones((0, 3), "float32"), np.ones((1, 3), "float32")]
    ((padded, _),) = neon.Buckets(rows, size=3, pad=0.1).epoch(0)
    assert padded.dtype == np.float32 and padded.shape == (3, 2, 3)
    assert padded[1, 0, 0] == np.float32(0.1)


FLIP, ROWS = neon.augment.Flip(1), np.ones((4, 2))


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: neon.Batches(3, size=2), "Batches: 3 has no rows"),
        (lambda: neon.Batches(np.array(3), size=2), r"Batches: array\(3\) has no rows"),
        (lambda: neon.Batches(ROWS, size=2, seed=-1), "Batches: seed=-1"),
        (lambda: neon.Batches(ROWS, size=2, seed=1.5), "Batches: seed=1.5"),
        (lambda: neon.Batches(ROWS, size=2, shard=3), "Batches: shard=3"),
        (lambda: neon.Batches(ROWS, size=2, shard=(0.5, 2)), r"Batches: shard=\(0.5, 2\)"),
        (lambda: neon.Buckets([[1]], size=2, seed=-1), "Buckets: seed=-1"),
        (lambda: neon.Buckets([1, 2], size=2), "Buckets: example 0 is 1, and no sequence"),
        (lambda: neon.Buckets(["ab"], size=2), "Buckets: example 0 is 'ab', and no sequence"),
        (lambda: neon.Buckets([[1, 2]], size=2, pad=0.5), "pad=0.5 is 0 in column 0, of int64"),
        (
            lambda: neon.Buckets([np.ones(2, "uint8")], size=2, pad=-1),
            "pad=-1 is 255 in column 0, of uint8",
        ),
        (
            lambda: list(neon.Buckets([np.ones((2, 3)), np.ones((1, 4))], size=2).epoch(0)),
            r"shapes \[\(3,\), \(4,\)\]",
        ),
        (lambda: neon.Augmented([(ROWS,)], FLIP, seed=0), r"changes=Flip.*\[neon.augment.Flip"),
        (lambda: neon.Augmented([(ROWS,)], [FLIP], seed=-1), "Augmented: seed=-1"),
        (
            lambda: list(neon.Augmented([(ROWS,)], [FLIP], seed=0, part=1).epoch(0)),
            "part=1 of a batch of 1 arrays",
        ),
        (lambda: neon.augment.Flip(1, 2.0), "Flip: rate=2.0"),
        (lambda: neon.augment.Pad({1: -1}), r"Pad: widths\[1\]=-1"),
        (lambda: neon.augment.Noise(-1), "Noise: deviation=-1"),
    ],
)
def test_what_makes_no_batches_is_refused(build, what):
    with pytest.raises(geon.ArgumentError, match=placed(what)):
        build()


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("last", ["keep", "drop"])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_of_buckets_share_nothing_and_have_as_many_batches(seed, last, parts):
    lengths = np.random.default_rng(1).integers(0, 12, 47)
    texts = [np.arange(length) for length in lengths]
    numbers = np.arange(47)
    seen, counts = [], set()
    for part in range(parts):
        data = neon.Buckets(
            texts, numbers, size=4, edges=[4, 8], seed=seed, last=last, shard=(part, parts)
        )
        found = list(data.epoch(2))
        assert len(found) == len(data)
        sizes = [len(batch[2]) for batch in found]
        assert last == "keep" or set(sizes) == {4}
        counts.add(tuple(sorted(sizes)))
        seen += [number for batch in found for number in batch[2].tolist()]
        for start in range(len(found) + 1):
            alike(list(data.epoch(2, start)), found[start:])
    assert len(counts) == 1 and len(set(seen)) == len(seen)
    groups = np.searchsorted([4, 8], lengths, side="right")
    whole = [count // parts for count in np.bincount(groups)]
    kept = whole if last == "keep" else [count - count % 4 for count in whole]
    assert len(seen) == parts * sum(kept)


def test_a_division_of_buckets_that_is_none_is_refused():
    for options, what in (({"last": "x"}, "last='x'"), ({"shard": (2, 2)}, r"shard=\(2, 2\)")):
        with pytest.raises(geon.ArgumentError, match=rf"Buckets.*test_data.py:\d+: .*{what}"):
            neon.Buckets([[1]], size=1, **options)
