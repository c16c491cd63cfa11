"""``Muon``: orthogonalised momentum steps for matrices."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call
from ....op_graph.functions.composites import L2_norm
from ....op_graph.op_graph import Leaf, Tensor
from ....op_graph.rows.contraction import dot
from ....op_graph.rows.elementwise import cast, maximum, sqrt
from ....op_graph.rows.movement import rename
from ....op_graph.rows.reductions import tensor_size
from ..checks import at_least_one
from .optimiser import Optimiser, Rate, UpdateStep

# Coefficients of a x + b x^3 + c x^5: five iterations map singular values from 0.01 to 1 to the
# range 0.7 to 1.2, steeply at first; further ones do not improve them.
NEWTON_SCHULZ_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
MIN_NORM = 1e-7  # lower bound of the norm that a gradient is divided by


@dataclass(eq=False)
class Muon(Optimiser):
    """For matrices: the momentum, made nearly orthogonal by Newton-Schulz iterations.

    All singular values of the change become about 1, times the rate and the square root of max(1,
    outputs / inputs), where outputs are along the last axis. ``decay`` is as in ``AdamW``. A weight
    without exactly two axes raises ``ArgumentError``; in ``Groups``, use it for ``Matrices()``. K.
    Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024.
    """

    rate: Rate = 0.02
    momentum: float = 0.95
    _: KW_ONLY
    nesterov: bool = True
    steps: int = 5

    decoupled = True
    shares = ("momentum",)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("Muon", "steps", self.steps)

    def moved(self, w: Leaf, value: Tensor, gradient: Tensor, step: UpdateStep) -> Tensor:
        """Return the weight minus rate times the orthogonal matrix."""
        if len(w.axes) != 2:
            raise ArgumentError(
                f"{user_call('Muon')}: {w} (made at {w.line_info}) has {len(w.axes)} axes, and it "
                "moves matrices, "
                "of two; give neon.Groups({neon.Matrices(): neon.Muon()}, rest=neon.AdamW())"
            )
        kept = step.state(w, "momentum")
        speed = self.momentum * kept + (1 - self.momentum) * gradient
        step.set(kept, speed)
        if self.nesterov:
            speed = (1 - self.momentum) * gradient + self.momentum * speed
        inputs, outputs = (cast(tensor_size(speed, axis), speed.dtype) for axis in w.axes)
        change = orthogonal(speed, self.steps) * sqrt(maximum(1, outputs / inputs))
        return value - step.rate * change


def orthogonal(x: Tensor, steps: int) -> Tensor:
    """Return a matrix with the singular vectors of x, and singular values near 1.

    Tiny singular values stay smaller.
    """
    a, b, c = NEWTON_SCHULZ_COEFFICIENTS
    few, many = x.axes
    if isinstance(few.length, int) and isinstance(many.length, int) and few.length > many.length:
        few, many = many, few  # the polynomial is odd: products of either side give the same
    x = rename(x / maximum(L2_norm(x), MIN_NORM), {few: "few", many: "many"})
    for _ in range(steps):
        square = dot(x, rename(x, {"few": "few'"}))
        fourth = dot(square, rename(square, {"few'": "few''", "few": "few'"}))
        change = b * square + c * rename(fourth, {"few''": "few'"})
        x = a * x + dot(change, rename(x, {"few": "few'"}))
    return rename(x, {"few": few.name, "many": many.name})
