"""Arrays without elements beside long axes: kernels that choose read where these would be."""

import mmap

import numpy as np
import pytest

import geon
from geon.transformers.native.runtime import result_pool

H, W = geon.Axis("H"), geon.Axis("W")
WIDE = 1 << 23  # elements: more bytes than lie behind an array of none by chance


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("debug", ["", "long-calls"])
def test_what_is_not_there_is_not_taken(monkeypatch, threads, debug):
    monkeypatch.setenv("GEON_DEBUG", f"verify,{debug}")
    x, v = geon.placeholder([H, W], "float32"), geon.persistent_tensor([H, W], "float32")
    inputs = geon.concat([geon.pad(x, {H: (1, 0)}) + 1, x * 2], H)
    computed = geon.concat([geon.flip(geon.cumsum(x, W), W), geon.constant(1.0, [H, W])], H)
    kept = geon.pad(v, {H: (0, 2)}, value=3) * 2
    results = [inputs, geon.pad(computed, {H: (2, 0)}), kept]
    for rows in (0, 2):
        with geon.NativeTransformer(threads=threads) as transformer:
            transformer.set(v, np.ones((rows, 64), np.float32))
            f = transformer.computation(results, x)
            for _ in range(3):
                found = f(np.ones((rows, 64), np.float32))
                assert [len(y) for y in found] == [1 + 2 * rows, 2 + 2 * rows, 2 + rows]
                assert (found[0][0] == 1).all() and (found[2][-2:] == 6).all()
    with geon.NativeTransformer(threads=threads) as transformer:
        f = transformer.computation([inputs], x)
        for _ in range(3):
            (y,) = f(np.zeros((0, WIDE), np.float32))
            assert y.shape == (1, WIDE) and (y == 1).all()


def test_less_address_space(monkeypatch):
    asked, real, least = [], mmap.mmap, result_pool.RESERVATION_BYTES[-1]

    def scarce(file, size, *options):
        asked.append(size)
        if size > least:
            raise OSError("no room")
        return real(file, size, *options)

    monkeypatch.setattr(mmap, "mmap", scarce)
    found = result_pool._reserved.__wrapped__()
    assert asked == list(result_pool.RESERVATION_BYTES) and len(found) == least and not found[-1]
    monkeypatch.setattr(result_pool, "RESERVATION_BYTES", result_pool.RESERVATION_BYTES[:1])
    assert result_pool._reserved.__wrapped__() is result_pool._FALLBACK_ZEROS
