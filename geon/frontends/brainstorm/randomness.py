"""Random states that know their seed, and the base of objects that own one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .describable import Describable, Members


class RandomState(np.random.RandomState):
    """A ``numpy.random.RandomState`` that keeps its seed and makes seeds and states.

    Without a seed, it takes one from ``global_rnd``, so ``global_rnd.set_seed(42)`` at the start
    makes a program reproducible.
    """

    seed_range = (0, 1000000000)

    def __init__(self, seed: int | None = None) -> None:
        self._seed = global_rnd.generate_seed() if seed is None else seed
        super().__init__(self._seed)

    def seed(self, seed: Any = None) -> None:
        """Set the seed: the name of NumPy for ``set_seed``."""
        super().seed(seed)
        self._seed = seed

    def get_seed(self) -> int:
        """Return the seed."""
        return self._seed

    def set_seed(self, seed: int) -> None:
        """Set the seed, and begin with its first draw."""
        self.seed(seed)

    def reset(self) -> None:
        """Begin again with the first draw of the seed."""
        self.seed(self._seed)

    def generate_seed(self) -> int:
        """Draw a seed."""
        return int(self.randint(*RandomState.seed_range))

    def create_random_state(self, seed: int | None = None) -> RandomState:
        """Return a new state with a seed, by default a drawn one."""
        return RandomState(self.generate_seed() if seed is None else seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._seed,), self.get_state()

    def __setstate__(self, state: Any) -> None:
        self.set_state(state)


class Seedable(Describable):
    """Base of objects that use random numbers: ``rnd`` is their ``RandomState``.

    Each new object without a seed draws one from ``global_rnd``.
    """

    __undescribed__: ClassVar[Members] = {"rnd"}

    def __init__(self, seed: int | None = None) -> None:
        self.rnd = RandomState(seed)

    def __complete__(self) -> None:
        Seedable.__init__(self)


global_rnd = RandomState(int(np.random.SeedSequence().generate_state(1)[0]))
