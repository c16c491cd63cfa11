"""Transformers with a defect, for the tools that must find it."""

import re
from dataclasses import replace

from geon.transformers.numpy.transformer import TARGET, NumPyTransformer


class WrongRow(NumPyTransformer):
    """A NumPy transformer whose table computes tanh as sin."""

    # Compiled programs are cached by the target's name: a name of its own keeps them apart.
    target = replace(TARGET, name="wrong row")

    def emit(self, *args, **options):
        """NumPy's text with one row exchanged."""
        return re.sub(r"\btanh\(", "sin(", super().emit(*args, **options))


class WrongMemory(NumPyTransformer):
    """A NumPy transformer whose tanh is wrong only where its value is no result."""

    target = replace(TARGET, name="wrong memory")

    def emit(self, *args, **options):
        """NumPy's text in which tanh into the arena is exchanged."""
        return re.sub(r"\btanh\((.*out=b)", r"sin(\1", super().emit(*args, **options))
