"""Rules make few loops for each loop of a tree, and test its legality few times.

These numbers are those of the time that rules take, without the noise of a clock.
"""

import pytest

from geon.transformers.loops import access, transformations, tree
from geon.transformers.native.trees import tree_choice as native_choice
from geon.transformers.pycuda.kernels import tree_choice as cuda_choice
from tests.golden.emitting import cuda, native

MADE = 16  # loops that are made for each loop of a scheduled tree, at most
CHECKS = 1.5  # tests whether iterations are independent, for each loop, at most
NESTS = (
    "block_gradient",
    "layer_norm_gradient",
    "stencil_gradient",
    "strided_convolution",
)


def counted(monkeypatch, owner, name, count):
    """Count the calls of a function of a module or a class."""
    real = getattr(owner, name)

    def call(*args, **options):
        count[0] += 1
        return real(*args, **options)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("name", NESTS)
def test_loops_are_made_and_tested_few_times(monkeypatch, name):
    made, checks, found = [0], [0], []
    counted(monkeypatch, tree.LoopNode, "__init__", made)
    counted(monkeypatch, access, "require_independent", checks)
    monkeypatch.setattr(transformations, "require_independent", access.require_independent)
    for emitted, choice in ((native, native_choice), (cuda, cuda_choice)):
        real = choice.schedule

        def schedule(*args, real=real, **options):
            made[0] = checks[0] = 0
            scheduled = real(*args, **options)
            found.append((len(tree.loops_of(scheduled.body)), made[0], checks[0]))
            return scheduled

        monkeypatch.setattr(choice, "schedule", schedule)
        assert emitted(name).source
    assert found
    for loops, all_made, all_checks in found:
        assert all_made <= MADE * loops
        assert all_checks <= CHECKS * loops
