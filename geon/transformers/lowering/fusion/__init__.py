"""Fusion: which ops one loop nest or contraction computes together, for targets that emit loops."""

from .facts import is_product as is_product
from .walk import fusion_groups as fusion_groups
from .walk import loop_groups as loop_groups
