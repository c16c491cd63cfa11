"""Substitution of loop variables and private buffers in statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any, NamedTuple

from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable, weighted_sum
from ...op_graph.axes.index_map import InRange
from ..kernels.ir.nest import Keep, Store
from ..kernels.ir.scalar_code import (
    Apply,
    Clamped,
    IndexNumber,
    Kept,
    Least,
    Load,
    RandomBits,
    ScalarBuilder,
    Select,
    Wrapped,
)
from ..kernels.ir.scalar_code import walk as walk_scalars
from .access import READ, Access, MemoryUses, joined, used
from .tree import (
    Body,
    CachePrefetch,
    Choose,
    Combine,
    Draw,
    Fold,
    LoopNode,
    Memory,
    Tree,
    Write,
    changed,
    deferring,
    divided,
    least,
    replace,
)


class BufferLayout(NamedTuple):
    """New places of a buffer's elements: ``scale`` times the former one, plus ``added``."""

    scale: Size
    added: AffineIndex


class Substitution:
    """Replaces variables by indices, and private buffers by others, in statements.

    Elements of buffers with ``layouts``, by former number, move.
    """

    def __init__(
        self,
        code: ScalarBuilder,
        env: Mapping[str, AffineIndex],
        buffers: Mapping[int, int] | None = None,
        layouts: Mapping[int, BufferLayout] | None = None,
    ) -> None:
        self.code, self.env = code, env
        self.buffers, self.layouts = buffers or {}, layouts or {}
        self.known: dict[int, Any] = {}
        self.roots: list[Any] = []  # what was replaced, so that ids are those of live objects
        self.indices: dict[int, tuple[AffineIndex, AffineIndex]] = {}  # by id, old and new

    def image(self, name: str) -> AffineIndex:
        """Return the index that replaces a variable."""
        return self.env.get(name) or variable(name)

    def number(self, number: int) -> int:
        """Return the number of a private buffer after replacement."""
        return self.buffers.get(number, number)

    def index(self, index: AffineIndex) -> AffineIndex:
        """Return an index with variables replaced."""
        found = self.indices.get(id(index))
        if found is None:
            found = self.indices[id(index)] = index, self.replaced_index(index)
        return found[1]

    def replaced_index(self, index: AffineIndex) -> AffineIndex:
        """Return what ``index`` returns: itself where nothing in it is replaced."""
        env = self.env
        for atom in index.terms:
            if atom in env or not isinstance(atom, str):
                parts = [(self.atom(atom), step) for atom, step in index.terms.items()]
                made = weighted_sum(parts, index.constant)
                return index if made == index else made
        return index

    def offset(self, number: int, offset: AffineIndex) -> AffineIndex:
        """Return an offset into a buffer of a former number, with variables replaced."""
        layout, made = self.layouts.get(number), self.index(offset)
        return made if layout is None else made * layout.scale + layout.added

    def atom(self, atom: Any) -> AffineIndex:
        """Return an atom with variables replaced, as an index."""
        if isinstance(atom, str):
            return self.image(atom)
        if isinstance(atom, Least):
            options = [self.index(each) for each in atom.of]
            same = all(map(is_, options, atom.of))
            return variable(atom) if same else least(options)
        if isinstance(atom, (Quotient, Remainder)):
            return divided(self.index(atom.of), atom.by)[isinstance(atom, Remainder)]
        if isinstance(atom, Clamped):
            return variable(Clamped(self.index(atom.of), self.guards(atom.guards)))
        return variable(self.value(atom))

    def guards(self, guards: tuple[InRange, ...]) -> tuple[InRange, ...]:
        """Return guards with variables replaced."""
        return tuple([InRange(self.index(x.index), x.low, x.high) for x in guards])

    def value(self, value: Any) -> Any:
        """Return scalar code with variables and buffers replaced."""
        found = self.known.get(id(value))
        if found is None:
            self.roots.append(value)
            for node in walk_scalars(value, known=self.known):
                self.known[id(node)] = self.node(node)
            found = self.known[id(value)]
        return found

    def node(self, node: Any) -> Any:
        """Return a node whose children have been replaced: itself where nothing in it is."""
        known, code = self.known, self.code
        if isinstance(node, Apply):
            args = tuple([known[id(each)] for each in node.args])
            same = all(map(is_, args, node.args))
            return node if same else code(Apply, node.row, args, node.attrs, node.dtype)
        if isinstance(node, (Load, Kept)):
            if isinstance(node, Load):
                former, number, offset = node.operand, node.operand, self.index(node.offset)
            else:
                former, number = node.number, self.number(node.number)
                offset = self.offset(former, node.offset)
            same = offset is node.offset and number == former
            return node if same else code(type(node), number, offset, node.dtype)
        if isinstance(node, IndexNumber):
            index = self.index(node.index)
            return node if index is node.index else code(IndexNumber, index, node.dtype)
        if isinstance(node, Select):
            sides = known[id(node.value)], known[id(node.other)]
            return code(Select, self.guards(node.guards), *sides)
        if isinstance(node, Wrapped):
            return code(Wrapped, known[id(node.position)], node.length)
        if isinstance(node, RandomBits):
            stream = [known[id(each)] for each in (node.seed, node.draw, node.call)]
            position = self.index(node.position)
            return code(RandomBits, *stream, position, node.size, node.dtype)
        return node

    def body(self, statements: Body) -> Body:
        """Return statements with variables, also of loops in them, and buffers replaced."""
        return tuple([self.statement(each) for each in statements])

    def statement(self, each: Any) -> Any:
        """Return a statement with variables and buffers replaced."""
        if isinstance(each, LoopNode):
            return self.loop(each)
        if isinstance(each, Write):
            return changed(each, stores=tuple([self.store(store) for store in each.stores]))
        if isinstance(each, Fold):
            elements = tuple([self.value(element) for element in each.elements])
            position = None if each.position is None else self.value(each.position)
            offset, into = self.offset(each.into[0], each.offset), self.numbers(each.into)
            return changed(each, into=into, offset=offset, elements=elements, position=position)
        if isinstance(each, Combine):
            into, of = self.numbers(each.into), self.numbers(each.of)
            offset = self.offset(each.into[0], each.offset)
            start = self.offset(each.of[0], each.start)
            return changed(each, into=into, of=of, offset=offset, start=start)
        if isinstance(each, CachePrefetch):
            return changed(each, offset=self.index(each.offset))
        if isinstance(each, Draw):
            (number,), bits = self.numbers((each.into,)), self.value(each.bits)
            count, end = self.index(each.count), self.index(each.end)
            return changed(each, into=number, bits=bits, count=count, end=end)
        then, otherwise = self.body(each.then), self.body(each.otherwise)
        return changed(each, guards=self.guards(each.guards), then=then, otherwise=otherwise)

    def loop(self, loop: LoopNode) -> LoopNode:
        """Return a loop with variables and buffers replaced."""
        body, extent = self.body(loop.body), self.index(loop.extent)
        name: Any = loop.variable
        if name in self.env:
            name = next(iter(self.env[name].terms))
        elif extent is loop.extent and all(map(is_, body, loop.body)):
            return loop
        return LoopNode(name, extent, body, *loop.form)

    def store(self, store: Store | Keep) -> Store | Keep:
        """Return a store with variables and buffers replaced."""
        value = self.value(store.value)
        if isinstance(store, Store):
            offset = self.index(store.offset)
            same = offset is store.offset and value is store.value
            return store if same else Store(store.operand, offset, value, store.dtype)
        number, offset = self.number(store.number), self.offset(store.number, store.offset)
        same = number == store.number and offset is store.offset and value is store.value
        return store if same else Keep(number, offset, value)

    def replaced(self, part: Any) -> Any:
        """Return a value or a store, or a tuple of them, with variables and buffers replaced."""
        if isinstance(part, tuple):
            return tuple([self.replaced(each) for each in part])
        if isinstance(part, (Store, Keep)):
            return self.store(part)
        return None if part is None else self.value(part)

    def numbers(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the numbers of buffers after replacement."""
        return tuple([self.number(number) for number in numbers])


class DeferredSubstitution(Substitution):
    """Replaces variables and private buffers in a statement at once, and in its values later.

    Values are replaced when they are first read. Several substitutions in a statement become one,
    so that transformations which follow each other do not build its scalar code again and again.
    """

    def __init__(
        self,
        code: ScalarBuilder,
        env: Mapping[str, AffineIndex],
        buffers: Mapping[int, int] | None = None,
        layouts: Mapping[int, BufferLayout] | None = None,
    ) -> None:
        super().__init__(code, env, buffers, layouts)
        # By the id of a substitution before this one: that one, and both as one.
        self.behind: dict[int, tuple[DeferredSubstitution, DeferredSubstitution]] = {}

    def after(self, first: DeferredSubstitution) -> DeferredSubstitution:
        """Return the substitution that does ``first`` and then this one."""
        found = self.behind.get(id(first))
        if found is None:
            found = self.behind[id(first)] = first, _Composition(first, self)
        return found[1]

    @property
    def moves(self) -> bool:
        """Return True if numbers of buffers or offsets into them may change."""
        return bool(self.buffers or self.layouts)

    def memory(self, memory: Memory) -> Memory:
        """Return memory with buffers replaced."""
        kind, number = memory
        return (kind, self.number(number)) if kind == "buffer" and self.moves else memory

    def element(self, access: Access) -> AffineIndex:
        """Return the offset of an access with variables and buffers replaced."""
        kind, number = access.memory
        moves = kind == "buffer" and self.moves
        return self.offset(number, access.offset) if moves else self.index(access.offset)

    def reaches(self, uses: MemoryUses) -> bool:
        """Return True if statements that use memory so access a buffer that is replaced."""
        return any(("buffer", number) in uses for number in (*self.buffers, *self.layouts))

    def statement(self, each: Any) -> Any:
        """Return a statement with variables and buffers replaced."""
        if isinstance(each, (CachePrefetch, Draw, Choose)):
            return super().statement(each)
        uses = used(each)
        if not self.env and not self.reaches(uses):
            return each
        if isinstance(each, Write):
            given: dict[str, Any] = {"streamed": each.streamed}
        elif isinstance(each, Fold):
            offset = self.offset(each.into[0], each.offset)
            given = {"reducer": each.reducer, "merges": each.merges, "offset": offset}
            given["into"] = self.numbers(each.into)
        else:
            made = super().statement(each)
            if isinstance(made, LoopNode):
                made.used = self.moved(uses)
            return made
        source, first = each.deferred or (each, None)
        made = deferring(type(each), source, self if first is None else self.after(first), given)
        made.used = self.moved(uses)
        return made

    def moved(self, uses: MemoryUses) -> MemoryUses:
        """Return how statements use memory with buffers replaced; variables do not matter."""
        if not self.buffers:
            return uses
        return joined([(self.memory(each), use) for each, use in uses.items()])


class _Composition(DeferredSubstitution):
    """Does one substitution after another."""

    def __init__(self, first: DeferredSubstitution, second: DeferredSubstitution) -> None:
        super().__init__(first.code, {})
        self.first, self.second = first, second
        self.images: dict[str, AffineIndex] = {}
        self.moving = first.moves or second.moves
        self.offsets: dict[tuple[int, int], AffineIndex] = {}  # by number and id of the former one

    @property
    def moves(self) -> bool:
        """Return True if numbers of buffers or offsets into them may change."""
        return self.moving

    def image(self, name: str) -> AffineIndex:
        """Return the index that replaces a variable."""
        found = self.images.get(name)
        if found is None:
            found = self.images[name] = self.second.index(self.first.image(name))
        return found

    def number(self, number: int) -> int:
        """Return the number of a private buffer after replacement."""
        return self.second.number(self.first.number(number)) if self.moving else number

    def replaced_index(self, index: AffineIndex) -> AffineIndex:
        """Return what ``index`` returns: itself where nothing in it is replaced."""
        parts = [(self.atom(atom), step) for atom, step in index.terms.items()]
        made = weighted_sum(parts, index.constant) if parts else index
        return index if made == index else made

    def offset(self, number: int, offset: AffineIndex) -> AffineIndex:
        """Return an offset into a buffer of a former number, with variables replaced."""
        if not self.moving:
            return self.index(offset)
        found = self.offsets.get((number, id(offset)))
        if found is None:
            first = self.first.offset(number, offset)
            found = self.second.offset(self.first.number(number), first)
            self.offsets[number, id(offset)] = found
            self.roots.append(offset)
        return found


def reindexed(
    tree: Tree,
    body: Body,
    numbers: frozenset[int],
    change: Callable[[int, AffineIndex], AffineIndex],
) -> Body:
    """Return statements with the offsets into private buffers ``numbers`` changed.

    ``change`` returns the offset that replaces one into the buffer of a number.
    """
    return _BufferOffsets(tree, numbers, change).body(body)


class _BufferOffsets(Substitution):
    """Changes the offsets of accesses to some buffers."""

    def __init__(
        self, tree: Tree, numbers: frozenset[int], change: Callable[[int, AffineIndex], AffineIndex]
    ) -> None:
        super().__init__(tree.code, {})
        self.numbered, self.change = numbers, change
        self.memories = {("buffer", number) for number in numbers}

    def node(self, node: Any) -> Any:
        """Return a node; loads from the buffers have changed offsets."""
        if isinstance(node, Kept) and node.number in self.numbered:
            offset = self.change(node.number, self.index(node.offset))
            return self.code(Kept, node.number, offset, node.dtype)
        return super().node(node)

    def store(self, store: Store | Keep) -> Store | Keep:
        """Return a store; one to the buffers has a changed offset."""
        made = super().store(store)
        if isinstance(made, Keep) and made.number in self.numbered:
            return replace(made, offset=self.change(made.number, made.offset))
        return made

    def statement(self, each: Any) -> Any:
        """Return a statement; states in the buffers have changed offsets."""
        uses = used(each)
        inside = [use for memory in self.memories if (use := uses.get(memory)) is not None]
        if not inside and not isinstance(each, (LoopNode, Choose, CachePrefetch)):
            return each
        folds = isinstance(each, Fold) and not any(READ in use.ways for use in inside)
        made = each if folds else super().statement(each)
        if isinstance(made, (Fold, Combine)) and self.numbered.intersection(made.into):
            return replace(made, offset=self.change(made.into[0], made.offset))
        return made
