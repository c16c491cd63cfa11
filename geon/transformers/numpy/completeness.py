"""Check that the NumPy target's tables cover a primitive, by kind."""

from __future__ import annotations

from collections.abc import Container

from ...op_graph.core.traversal import is_bound
from ...op_graph.op_graph import Op
from . import arrays, kernels, table

# Primitives that the statements of loops handle.
REGIONS = frozenset({"scan", "while", "case", "region_result", "parameter"})


def lacks(op: Op) -> list[str]:
    """Return the table entries that a lowered op needs and that are missing."""
    name, kind = op.primitive.name, op.primitive.kind
    if name in REGIONS or is_bound(op) or op.primitive.index_map is not None:
        return []
    tables: dict[str, Container[str]] = {}
    if op.primitive.has_side_effect:
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
