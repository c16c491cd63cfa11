"""Fusion: groups ops into loop nests and contractions, for targets that emit loops."""

from .greedy import fusion_groups as fusion_groups
from .greedy import loop_groups as loop_groups
from .op_facts import is_product as is_product
