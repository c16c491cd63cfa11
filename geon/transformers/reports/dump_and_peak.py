"""Reports of a computation: replayable dump, peak memory, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError
from ...op_graph.axes.length_defaults import default_lengths
from ...op_graph.axes.lengths import Length, names_of
from ...op_graph.building.typing import Lengths
from ...op_graph.op_graph import Leaf, post_order, storage_leaves
from ...op_graph.text.dumps import dumps
from ..binding.open_lengths import named_lengths
from ..compile import CompileStages
from ..lowering.planning.plan import peak
from ..request import Request
from .explain import explain


def peak_bytes(stages: CompileStages, lengths: Lengths | None, threads: int) -> int | Length:
    """Return the bytes that a call needs beside its inputs and the variables."""
    request = stages.request
    given = named_lengths(lengths, request.open_names, "lengths")
    for name, length in request.specialized.items():
        if given.get(name, length) != length:
            raise ArgumentError(f"lengths: {name} is {given[name]}; {request.specialization}")
    known = {**default_lengths(), **request.lengths, **given}
    return peak(stages.plan, known, threads)


def dump_request(request: Request, known: Mapping[Leaf, Any], lengths: Mapping[str, int]) -> str:
    """Return the text of a request with the values of its leaves and the lengths of its ops."""
    ops = post_order(request.results)
    replaced = dict(zip(request.inputs, request.placeholders, strict=True)) | request.storage
    fed = {replaced.get(leaf, leaf): array for leaf, array in known.items()}
    feeds = {leaf: fed[leaf] for leaf in storage_leaves(*request.results) if leaf in fed}
    lengths_used = [axis.expression for op in ops for axis in op.axes]
    lengths_used += [op.attrs.length for op in ops if op.primitive.name == "length"]
    used = {name for length in lengths_used for name in names_of(length)}
    needed = {name: size for name, size in lengths.items() if name in used}
    return dumps(list(request.results), feeds=feeds, lengths=needed)


def html(stages: CompileStages, transformer: str, threads: int) -> str:
    """Return the HTML of a computation for notebooks."""
    # imported here: it loads HTML's table of names
    from ...op_graph.text.display import computation_html, fold_lines

    table = computation_html(
        {
            "results": ", ".join(map(str, stages.request.results)),
            "placeholders": ", ".join(map(str, stages.request.placeholders)),
            "variables": ", ".join(map(str, stages.linking.variables)),
            "transformer": transformer,
            "peak bytes": str(peak_bytes(stages, None, threads)),
        }
    )
    return table + fold_lines("plan", explain(stages, "plan", threads).splitlines())
