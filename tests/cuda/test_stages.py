"""Stages of tiles: who fills one and who reads it wait for each other, and the checker knows."""

import numpy as np
import pytest

import geon
from geon.errors import DeviceError
from geon.transformers.pycuda.emit import cuda_module
from geon.transformers.pycuda.launches.device import PipelineStages, Signature, most_blocks
from geon.transformers.pycuda.launches.dialect import cuda_text
from geon.transformers.pycuda.runtime import host

from . import test_attention
from .devices import transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
WAITS = {
    "of who fills": "geon_await(barriers + GEON_MOST_STAGES + at, parity ^ 1);",
    "of who reads": "geon_await(barriers + at, parity);",
    "of the warp": "__syncwarp(0xffffffffu);",
}


def attends():
    """Attention over more keys than there are stages, by a checker of races."""
    inputs = test_attention.operands("float16")
    with transformer_on(host.HostDevice("races")) as cuda:
        f = cuda.computation(test_attention.attended(*inputs), *inputs)
        f(*test_attention.numbers(inputs, (1, 3, 9 * 64)))


def test_no_place_is_used_without_a_wait():
    attends()


@pytest.mark.parametrize("wait", WAITS)
def test_each_wait_is_needed(wait, monkeypatch):
    def without(name):
        text = cuda_text(name)
        return text.replace(WAITS[wait], "") if name == "stages.cuh" else text

    assert without("stages.cuh") != cuda_text("stages.cuh")
    monkeypatch.setattr(cuda_module, "cuda_text", without)
    with pytest.raises(DeviceError, match="without a barrier between them|never come to"):
        attends()


def test_who_waits_for_nobody_is_told():
    """A stage that nobody fills ends the launch with an error, and does not hang."""
    text = cuda_text("prelude.cuh") + "".join(
        cuda_text(name) for name in ("chunks.cuh", "matrices.cuh", "stages.cuh")
    )
    body = "GEON_STAGES(1024) stages.begin(1); stages.wait_to_read();"
    text += f'extern "C" __global__ void tried(float *x)\n{{\n{body}\n}}\n'
    device = host.HostDevice()
    kernels = device.load(host.CudaSource(text), [Signature("tried", ("float *",), True)])
    with pytest.raises(DeviceError, match="thread 0 of block 0 waits at a barrier of a stage"):
        device.launch(kernels["tried"], 1, 32, [0])


def test_bits_hang_on_no_number_of_processors(monkeypatch):
    inputs = test_attention.operands("bfloat16")
    given = test_attention.numbers(inputs, (2, 200, 70))
    found = []
    for processors in (1, 3, 1000):
        monkeypatch.setattr(host, "SIMULATED_PROCESSORS", processors)
        with transformer_on(host.HostDevice()) as cuda:
            f = cuda.computation(test_attention.attended(*inputs), *inputs)
            found.append(f(*given).tobytes())
    assert found[0] == found[1] == found[2]


def test_a_block_that_goes_on_has_no_more_beside_it_than_processors():
    own = Signature("attends", (), True, PipelineStages(11, least=3, goes_on=True))
    assert most_blocks(own, 132) == 132
    for other in (
        Signature("adds", (), False),
        Signature("multiplies", (), True, PipelineStages(11, 3)),
    ):
        assert most_blocks(other, 132) > 1 << 31


@pytest.mark.parametrize("scale", [0.25, 0.75, -0.5, 0.0])
@pytest.mark.parametrize("twice", [False, True])
def test_scores_by_any_factor(scale, twice):
    """A positive one is part of the power, others are not."""
    q, k, v = test_attention.operands("float16")
    scores = test_attention.product(q, k, "D") * scale * (0.5 if twice else 1.0)
    shares = geon.softmax(scores, normalization_axes=test_attention.S)
    graph = test_attention.product(shares, v, "S")
    test_attention.compare(graph, [q, k, v], test_attention.LENGTHS[1:6:2], 2e-2)
    with geon.make_transformer("cuda-on-host") as cuda:
        source = cuda.computation(graph, q, k, v).source
    assert ("geon_score<" in source.partition("kernel_0")[2]) == (scale <= 0)


def test_scores_that_grow_by_far():
    """Sums shrink where a key's score is more than eight doublings above all before it."""
    inputs = test_attention.operands("bfloat16")
    q, k, v = test_attention.numbers(inputs, (1, 40, 300))
    grows = (1 + np.arange(300) / 8)[:, None]
    k = (k.astype(np.float64) * grows).astype(k.dtype)
    with geon.make_transformer("cuda-on-host") as cuda:
        found = cuda.computation(test_attention.attended(*inputs), *inputs)(q, k, v)
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    scores = np.einsum("bhtd,bhsd->bhts", q, k) / 8
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhts,bhse->bhte", powers / powers.sum(-1, keepdims=True), v)
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=0.02 * abs(v).max())
