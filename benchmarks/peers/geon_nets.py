"""In geon: networks of layers, as ``geon.frontends.neon`` has them.

``STEPS`` are training steps: each function takes sizes and gives a network, its inputs and target,
an optimiser, and open lengths. The network has the name ``net``, below which first values are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import geon
from geon import Axis, Window, placeholder
from geon.frontends import neon
from geon.frontends.neon import axis as ax

from .prepared import MOMENTUM, NET_DECAY, NET_EPSILON, NET_RATE, ROTARY
from .workloads import Sizes

INIT = neon.Constant(0.01)  # all first values are given


@dataclass(frozen=True)
class Training:
    """What a step is made of."""

    net: neon.Layer
    x: Any
    t: Any
    optimiser: neon.Optimiser
    lengths: dict[Axis, int]

    def step(self) -> tuple[Any, list[Any], list[Any]]:
        """The cost, the effects of a step, and all variables of the network."""
        training = neon.Training()
        scores = self.net(self.x, training=training)
        cost = geon.mean(neon.costs.cross_entropy(scores, self.t))
        return cost, [self.optimiser(cost), *training.updates], self.net.all_variables()


def convolution(size: int, axis: Axis, stride: int = 1) -> neon.Convolution:
    """Filters of ``size`` by ``size`` with a border."""
    window = Window(size, stride, pad=size // 2)
    return neon.Convolution({ax.H: window, ax.W: window}, axis, INIT)


class Block(neon.Layer):
    """Two convolutions and a way past them."""

    def __init__(self, axis: Axis, stride: int, shortcut: bool) -> None:
        super().__init__()
        self.first, self.first_norm = convolution(3, axis, stride), neon.BatchNorm()
        self.second, self.second_norm = convolution(3, axis), neon.BatchNorm()
        self.shortcut = convolution(1, axis, stride) if shortcut else None
        self.shortcut_norm = neon.BatchNorm()

    def forward(self, x: Any, training: neon.Training | None = None) -> Any:
        """What the block makes of images."""
        y = geon.relu(self.first_norm(self.first(x), training=training))
        y = self.second_norm(self.second(y), training=training)
        if self.shortcut is not None:
            x = self.shortcut_norm(self.shortcut(x), training=training)
        return geon.relu(x + y)


class ResidualNet(neon.Layer):
    """A convolution, three stages of blocks, and a product with the mean of all places."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__("net")
        width, blocks = sizes["channels"], sizes["blocks"]
        self.stem, self.stem_norm = convolution(3, Axis("C", width)), neon.BatchNorm()
        self.blocks = []
        for number in range(3 * blocks):
            stage, further = number // blocks, number >= blocks and number % blocks == 0
            axis = Axis("C", width * 2**stage)
            self.blocks.append(Block(axis, 2 if further else 1, further))
        self.head = neon.Affine(Axis("Y", sizes["classes"]), INIT)

    def forward(self, x: Any, training: neon.Training | None = None) -> Any:
        """Scores of classes."""
        x = geon.relu(self.stem_norm(self.stem(x), training=training))
        for block in self.blocks:
            x = block(x, training=training)
        return self.head(geon.mean(x, [ax.H, ax.W]))


class GPTBlock(neon.Layer):
    """Attention, then two products, each on what is normed and beside it."""

    def __init__(self, axis: Axis, heads: int) -> None:
        super().__init__()
        width = axis.length
        assert isinstance(width, int)
        self.before, self.between = neon.LayerNorm(), neon.LayerNorm()
        self.attention = neon.MultiHeadAttention(
            Axis("head", heads), Axis("key", width // heads), axis, INIT,
            causal=True, rotary=ROTARY,
        )  # fmt: skip
        self.wide = neon.Affine(Axis("F", 4 * width), INIT, activation=gelu)
        self.narrow = neon.Affine(axis, INIT)

    def forward(
        self, x: Any, training: neon.Training | None = None, cache: neon.Cache | None = None
    ) -> Any:
        """What the block makes of a sequence."""
        x = x + self.attention(self.before(x), training=training, cache=cache)
        return x + self.narrow(self.wide(self.between(x)))


class GPT(neon.Layer):
    """A table, blocks, a norm and a product."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__("net")
        axis, words = Axis("E", sizes["width"]), Axis("V", sizes["words"])
        self.table = neon.LookupTable(words, axis, INIT)
        self.blocks = [GPTBlock(axis, sizes["heads"]) for _ in range(sizes["layers"])]
        self.norm = neon.LayerNorm()
        self.head = neon.Linear(words, INIT)

    def forward(
        self, x: Any, training: neon.Training | None = None, cache: neon.Cache | None = None
    ) -> Any:
        """Scores of the next token."""
        x = self.table(x)
        for block in self.blocks:
            x = block(x, training=training, cache=cache)
        return self.head(self.norm(x))


def gelu(x: Any) -> Any:
    """The form with tanh."""
    return geon.gelu(x, approximate="tanh")


def residual_step(sizes: Sizes) -> Training:
    """Momentum SGD."""
    side = sizes["side"]
    x = placeholder([ax.N, Axis("H", side), Axis("W", side), Axis("C", 3)])
    t = placeholder([ax.N], "int64")
    optimiser = neon.SGD(NET_RATE, MOMENTUM)
    return Training(ResidualNet(sizes), x, t, optimiser, {ax.N: sizes["batch"]})


def text(sizes: Sizes) -> tuple[Any, Any, dict[Axis, int]]:
    """Rows of tokens, those that come next, and their lengths."""
    x, t = (placeholder([ax.N, ax.T], "int64") for _ in range(2))
    return x, t, {ax.N: sizes["batch"], ax.T: sizes["tokens"]}


def gpt_step(sizes: Sizes) -> Training:
    """AdamW."""
    x, t, lengths = text(sizes)
    optimiser = neon.AdamW(NET_RATE, epsilon=NET_EPSILON, decay=NET_DECAY)
    return Training(GPT(sizes), x, t, optimiser, lengths)


def lstm_model_step(sizes: Sizes) -> Training:
    """Adam."""
    x, t, lengths = text(sizes)
    words = Axis("V", sizes["words"])

    class Model(neon.Layer):
        """A table, a recurrent layer and a product."""

        def __init__(self) -> None:
            super().__init__("net")
            self.table = neon.LookupTable(words, Axis("E", sizes["width"]), INIT)
            self.lstm = neon.LSTM(Axis("H", sizes["width"]), INIT)
            self.head = neon.Affine(words, INIT)

        def forward(self, x: Any, training: neon.Training | None = None) -> Any:
            """Scores of the next token."""
            return self.head(self.lstm(self.table(x)))

    return Training(Model(), x, t, neon.Adam(NET_RATE, epsilon=NET_EPSILON), lengths)


STEPS: dict[str, Callable[[Sizes], Training]] = {
    f.__name__: f for f in (residual_step, gpt_step, lstm_model_step)
}


def going_on(sizes: Sizes) -> tuple[neon.Layer, Any, Any, neon.Cache]:
    """A network that goes on from a cache: its scores after the last of the tokens ``x``."""
    x = placeholder([Axis("N", 1), Axis("T", 1)], "int64")
    net, cache = GPT(sizes), neon.Cache(Axis("place", sizes["places"]), name="cache")
    return net, x, net(x, cache=cache)[0, 0], cache
