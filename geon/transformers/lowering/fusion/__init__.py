"""Fusion: which ops one loop nest or contraction computes together, for targets that emit loops."""

from .walk import fusion_groups as fusion_groups
from .walk import loop_groups as loop_groups
