"""What the NumPy target needs to compute a row, by kind: no row is half known."""

from __future__ import annotations

from collections.abc import Container

from ...op_graph.core.traversal import is_bound
from ...op_graph.op_graph import Op
from . import arrays, kernels, table

# What statements of loops are written for.
REGIONS = frozenset({"scan", "while", "case", "region_result", "parameter"})


def lacks(op: Op) -> list[str]:
    """The entries that an op of a lowered program needs and tables do not have."""
    name, kind = op.primitive.name, op.primitive.kind
    if name in REGIONS or is_bound(op) or op.primitive.index_map is not None:
        return []
    tables: dict[str, Container[str]] = {}
    if op.primitive.acts:
        tables["SHOWN of transformers/numpy/arrays.py"] = arrays.SHOWN
        tables["SPECIAL of transformers/numpy/kernels.py"] = kernels.SPECIAL
    elif kind == "movement":
        return ["an index_map of the row"]
    elif name not in kernels.SPECIAL:
        where = {"elementwise": "TABLE", "reduction": "REDUCTIONS"}.get(kind)
        if where is None:
            tables["SPECIAL of transformers/numpy/kernels.py"] = kernels.SPECIAL
        else:
            tables[f"{where} of transformers/numpy/table.py"] = getattr(table, where)
    return [f"{name!r} in {where}" for where, known in tables.items() if name not in known]
