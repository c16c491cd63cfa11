"""Random convolutions whose channels are vectors, so that tiles read what windows show in place.

Lengths are around those at which blocks of places and of rows, and vectors, end.
"""

import numpy as np

import geon
from geon.transformers.sizes.product_blocks import ROWS_PER_GROUP
from tests import window_cases as cases

CHANNELS = (1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 64, 72)
FILTERS = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    12,
    13,
    16,
    17,
    31,
    ROWS_PER_GROUP - 1,
    ROWS_PER_GROUP,
    ROWS_PER_GROUP + 1,
    65,
)
LENGTHS = (1, 2, 3, 7, 8, 9, 14, 16, 23, 31, 32, 33, 50)
IMAGES = (0, 1, 1, 2, 2, 3, 3, 5, 11)
MOST = 1 << 23  # multiply-adds


def along(random, k, open_):
    """Windows along axis number ``k``, at least one of which fits."""
    while True:
        pad = (int(random.integers(0, 4)), int(random.integers(0, 4)))
        if random.integers(0, 4) == 0:
            pad = (0, 0)
        found = cases.Along(
            cases.SPATIAL[k],
            cases.FILTER[k],
            int(random.choice(LENGTHS)),
            int(random.integers(1, 6)),
            int(random.choice([1, 1, 1, 2, 3])),
            int(random.choice([1, 1, 1, 2])),
            pad,
            open_,
        )
        if found.spare >= 0:
            return found


def drawn(seed):
    """A case whose channels mostly adjoin, of few multiply-adds, and its random numbers."""
    random = np.random.default_rng(seed)
    while True:
        count = int(random.choice([1, 2, 2, 2, 3]))
        open_ = random.integers(0, 4) == 0
        axes = [along(random, k, open_) for k in range(count)]
        sizes = {
            "N": int(random.choice(IMAGES)),
            "C": int(random.choice(CHANNELS)),
            "K": int(random.choice(FILTERS)),
            "G": int(random.choice([1, 2])),
        }
        work = sizes["N"] * sizes["C"] * sizes["K"] * sizes["G"]
        for each in axes:
            work *= each.count * each.size
        if work <= MOST:
            break
    spatial, positions = cases.SPATIAL[:count], cases.FILTER[:count]
    groups = "G" if random.integers(0, 4) == 0 else ""
    x_axes, w_axes = "N" + groups + spatial + "C", groups + positions + "CK"
    if random.integers(0, 5) == 0:
        x_axes = groups + spatial + "NC"
    if random.integers(0, 5) == 0:
        x_axes, w_axes = cases.shuffled(random, x_axes), cases.shuffled(random, w_axes)
    open_axes = {"N"} if random.integers(0, 2) else set()
    return cases.Case(axes, x_axes, w_axes, "C", sizes, open_axes), random


class WideConvolution:
    """A convolution with the slopes of its filters and images: its graph, and NumPy's values."""

    def __init__(self, seed):
        self.case, random = drawn(seed)
        case = self.case
        self.x, self.w = (geon.placeholder([case.axis(a) for a in own]) for own in case_axes(case))
        y = geon.convolution(self.x, self.w, case.windows, ["C"])
        self.g = geon.placeholder(y.axes)
        self.results = [y, *geon.deriv(y, [self.w, self.x], seed=self.g)]
        self.arrays = [random.normal(size=case.lengths(own)) for own in case_axes(case)]
        self.y = cases.convolved(case, *self.arrays)
        self.arrays.append(random.normal(size=self.y.shape))

    def feeds(self):
        """The arrays of its leaves."""
        leaves = (self.x, self.w, self.g)
        return {leaf: array.astype("f4") for leaf, array in zip(leaves, self.arrays, strict=True)}

    def check(self, found):
        """Compares results with NumPy's, which are of float64."""
        x, w, g = self.arrays
        case = self.case
        wanted = [self.y, cases.slope_of_w(case, g, x), cases.slope_of_x(case, g, w)]
        for one, right in zip(found, wanted, strict=True):
            bound = 3e-5 * max(np.abs(right).max(initial=0), 1)
            np.testing.assert_allclose(one, right, 0, bound, err_msg=str(case))


def case_axes(case):
    """The axes of images and of filters."""
    return case.x_axes, case.w_axes
