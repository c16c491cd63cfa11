"""Complex numbers as pairs of real ones: rewrites a graph to one without complex values.

Each complex op becomes two real ones, of the real and the imaginary parts. Where values lie in
memory (placeholders, variables, results, carries of loops) and for Fourier transforms, both parts
are one tensor with a further last axis of length 2: the bytes of a complex array. A part that is
known to be zero is None, so that products with real numbers cost two multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.building.constants import CONSTANT, array_constant, constant_value, number
from ....op_graph.building.rebuild import carry, with_args, with_bodies
from ....op_graph.building.weak import strengthen
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.region_body import Body
from ....op_graph.core.source_info import Site, building, current, with_remark
from ....op_graph.op_graph import (
    Leaf,
    Op,
    RegionOp,
    Tensor,
    make,
    make_leaf,
    post_order,
    put_notes,
)
from ....op_graph.regions.parameters import PARAMETER, parameter, result_of
from ....op_graph.rows.concatenation import stack
from ....op_graph.rows.effects import PRINT, PrintAttributes
from ....op_graph.rows.fourier import FOURIER, FOURIER_PARTS
from ....op_graph.rows.movement import broadcast
from ....op_graph.rows.slicing import _slice
from ....op_graph.transforms.functionalize import Functional
from ....op_graph.values.dtypes import real_dtype
from .complex_arithmetic import PARTS, PRODUCTS, Part
from .fourier_products import as_products

RULES = PARTS | PRODUCTS
# No user's axis has this name.
PART_AXIS = Axis("re*im", 2)


def is_complex(op: Op) -> bool:
    """Return True for an op with complex elements."""
    return op.dtype.kind == "c"


@dataclass(frozen=True, eq=False)
class RealForm:
    """A graph without complex values.

    ``leaves`` maps its placeholders and variables to the complex ones that they stand for.
    """

    pure: Functional
    inputs: tuple[Leaf, ...]
    leaves: dict[Leaf, Leaf]


def real_form(
    pure: Functional, inputs: Sequence[Leaf], own: OwnTable, transforms: bool
) -> RealForm:
    """Return the graph with complex values as pairs of real ones; new ops are in ``own``.

    Without ``transforms``, Fourier transforms of known lengths become products with matrices.
    The graph's results have a further last axis of length 2 where they were complex.
    """
    split = _ComplexRewriter(transforms)
    with building(own):
        for op in [*post_order(pure.roots), *pure.updates, *inputs]:
            split.add(op)
        made = pure.mapped(split.value, split.value)
    return RealForm(made, tuple([split.value(leaf) for leaf in inputs]), split.leaves)


class _ComplexRewriter:
    """One rewrite: ``real`` maps ops to real ones, ``parts`` complex ops to their parts.

    ``whole`` maps complex ops to the tensor of both parts. A complex op is in one of the last two
    at least; ``pair`` and ``joined`` make the other form where it is used.
    """

    def __init__(self, transforms: bool) -> None:
        self.transforms = transforms
        self.real: dict[Op, Any] = {}
        self.parts: dict[Op, tuple[Part, Part]] = {}
        self.whole: dict[Op, Any] = {}
        self.leaves: dict[Leaf, Leaf] = {}

    def add(self, op: Op) -> None:
        """Rewrite an op whose arguments are rewritten."""
        if op in self.real or op in self.parts or op in self.whole:
            return
        current.site = op._site
        if not is_complex(op) and not op.bodies and not any(map(is_complex, op.args)):
            args = tuple([self.real[arg] for arg in op.args])
            made: Op = (
                result_of(args[0], op.attrs.number, op._site)
                if op.args and isinstance(op.args[0], RegionOp)
                else with_args(op, args)
            )
            self.real[op] = carry(op, made)
        elif isinstance(op, RegionOp):
            bodies = [self.body(body) for body in op.bodies]
            args = tuple([self.value(arg) for arg in op.args])
            self.real[op] = carry(op, with_bodies(op, bodies, args))
        elif isinstance(op, Leaf):
            self.whole[op] = self.leaf(op)
        elif op.primitive is PARAMETER:
            axes = Axes(op.axes, PART_AXIS)
            self.whole[op] = parameter(op.attrs.number, axes, real_dtype(op.dtype))
        elif op.args and isinstance(op.args[0], RegionOp):
            self.whole[op] = result_of(self.real[op.args[0]], op.attrs.number, op._site)
        elif op.primitive is CONSTANT:
            self.parts[op] = _constant_parts(op)
        elif op.primitive is PRINT:
            pairs = (self.joined(op.args[0]),), PrintAttributes(op.attrs.label, True)
            self.whole[op] = carry(op, make(PRINT, *pairs))
        elif op.primitive is FOURIER:
            self.put_transform(op)
        else:
            self.put_parts(op)

    def put_parts(self, op: Op) -> None:
        """Rewrite an op by the rule of its primitive, else as the same op of each part."""
        rule = RULES.get(op.primitive.name)
        if rule is None:
            found = self.each(op, 0), self.each(op, 1)
        else:
            given = [self.pair(arg) for arg in op.args]
            current.site = _site_of_parts(op)
            found = rule(op, given)
        if is_complex(op):
            self.parts[op] = found
        else:
            self.real[op] = carry(op, broadcast(found[0], op.axes))

    def each(self, op: Op, part: int) -> Part:
        """Return an op that is linear in its complex arguments, applied to one of the parts."""
        if all(self.pair(arg)[part] is None for arg in op.args if is_complex(arg)):
            return None
        args = [self.part(arg, part) if is_complex(arg) else self.real[arg] for arg in op.args]
        made: Any = with_args(op, tuple(args), real_dtype(op.dtype), weak=False)
        return made

    def put_transform(self, op: Op) -> None:
        """Rewrite a Fourier transform, which takes and returns tensors of both parts."""
        products = None if self.transforms else as_products(op)
        if products is None:
            args = tuple([self.value(arg) for arg in op.args])
            attrs = (*op.attrs, PART_AXIS)
            made = carry(op, make(FOURIER_PARTS, args, attrs, guards=op.guards))
            (self.whole if is_complex(op) else self.real)[op] = made
            return
        site = current.site
        for each in post_order([products], set(op.args)):
            self.add(each)
            current.site = site
        if is_complex(op):
            self.parts[op] = self.pair(products)
        else:
            self.real[op] = self.real[products]

    # Forms of a value ---------------------------------------------------------------------------

    def value(self, op: Op) -> Any:
        """Return the real op of a real op, or the tensor of both parts of a complex one."""
        return self.joined(op) if is_complex(op) else self.real[op]

    def joined(self, op: Op) -> Tensor:
        """Return the tensor of both parts of a complex op."""
        found = self.whole.get(op)
        if found is None:
            current.site = _site_of_parts(op)
            both = [self.part(op, k) for k in (0, 1)]
            found = self.whole[op] = carry(op, stack(both, PART_AXIS, len(op.axes)))
        return found

    def pair(self, op: Op) -> tuple[Part, Part]:
        """Return the parts of an op, None for zero; a real op is its own real part."""
        if not is_complex(op):
            return self.real[op], None
        found = self.parts.get(op)
        if found is None:
            whole = self.whole[op]
            items = (None,) * len(op.axes)
            found = self.parts[op] = (
                _slice(whole, (*items, ("at", 0)), (), ()),
                _slice(whole, (*items, ("at", 1)), (), ()),
            )
        return found

    def part(self, op: Op, k: int) -> Tensor:
        """Return one of the parts of a complex op, over its axes."""
        found = self.pair(op)[k]
        if found is None:
            found = number(0, real_dtype(op.dtype))
        return broadcast(strengthen(found, real_dtype(op.dtype)), op.axes)

    def leaf(self, leaf: Leaf) -> Leaf:
        """Return a leaf for the bytes of a complex one."""
        axes, dtype = Axes(leaf.axes, PART_AXIS), real_dtype(leaf.dtype)
        made = make_leaf(leaf.primitive, axes, dtype, leaf.info, leaf._site)
        put_notes(made, leaf.notes())
        self.leaves[made] = leaf
        return made

    def body(self, body: Body) -> Body:
        """Return the body of a region without complex values."""
        for op in post_order([*body.parameters, *body.results]):
            self.add(op)
        given, made = (tuple(map(self.value, ops)) for ops in (body.parameters, body.results))
        return Body(given, made)


def _site_of_parts(op: Op) -> Site:
    """Return the site of the parts of a complex op, with a remark that names its primitive."""
    before = op._site[2]
    what = f"complex {op.primitive.name}"
    return with_remark(op._site, f"{before}, {what}" if before else what)


def _constant_parts(op: Op) -> tuple[Part, Part]:
    """Return the parts of a constant, None for zeros."""
    array = constant_value(op)
    found = [array_constant(x, op.axes) if x.any() else None for x in (array.real, array.imag)]
    return found[0], found[1]
