"""``BufferView``: nested, named views of a network's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import ValidationError
from ..utils import PathError


class UnkeptError(ValidationError):
    """A buffer was read that a compiled step does not store."""


class BufferView(list[Any]):
    """Buffers by name and in order: ``view.W``, ``view['W']``, ``view[0]``, ``view['A.outputs']``.

    The buffers are arrays or views. It can be unpacked like a list. The view stays the same object
    when the network is resized.
    """

    def __init__(
        self,
        buffer_names: Sequence[str],
        buffers: Sequence[Any],
        full_buffer: Any = None,
        contexts: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__()
        self._contexts: dict[str, int] = {}
        self._hidden: dict[str, str] = {}
        self._names: list[str] = []
        self._places: dict[tuple[str, str], Any] = {}
        self.adjust(buffer_names, buffers, full_buffer, contexts)

    def adjust(
        self,
        buffer_names: Sequence[str],
        buffers: Sequence[Any],
        full_buffer: Any = None,
        contexts: Mapping[str, int] | None = None,
    ) -> BufferView:
        """Replace the buffers, and return the view."""
        for name in self._names:
            self.__dict__.pop(name, None)
        self._hidden = {}
        self._names, self._full_buffer = list(buffer_names), full_buffer
        self._contexts, self._places = dict(contexts or {}), {}
        self[:] = list(buffers)
        for name, buffer in zip(self._names, buffers, strict=True):
            if name in self.__dict__ or hasattr(type(self), name):
                raise PathError(
                    f"{name!r} is a name of every BufferView; call the buffer otherwise"
                )
            self.__dict__[name] = buffer
        return self

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str):
            name, _, rest = item.partition(".")
            if name not in self._names:
                raise PathError(
                    f"{item!r}: there is no {name!r}; there are "
                    f"{', '.join(self._names) or 'no buffers'}"
                )
            found = getattr(self, name)
            return found[rest] if rest else found
        if self._hidden:
            indices = range(len(self))[item]
            for index in [indices] if isinstance(indices, int) else indices:
                self._refuse_hidden(self._names[index])
        return super().__getitem__(item)

    def __iter__(self) -> Iterator[Any]:
        for name in self._names if self._hidden else ():
            self._refuse_hidden(name)
        return super().__iter__()

    def _array(self, name: str) -> Any:
        """Return a buffer, also a hidden one."""
        return super().__getitem__(self._names.index(name))

    def _place(self, view: str, name: str) -> Any:
        """Return an array of a layer's view: the steps without its context.

        For the view ``before``, it is the context alone, of an output or an internal.
        """
        key = view, name
        if key not in self._places:
            kinds = ("outputs", "internals") if view == "before" else (view,)
            owner = next(v for v in map(self._array, kinds) if name in v.keys())
            array, size = owner._array(name), owner._contexts.get(name)
            if view == "before":
                array = array[-1] if size == 1 else array[-size:]
            elif size:
                array = array[:-size]
            self._places[key] = array
        return self._places[key]

    def _hide(self, paths: Mapping[str, str]) -> None:
        """Refuse to show buffers that a compiled step has not stored: paths by name."""
        self._hidden = dict(paths)
        for name in self._hidden:
            self.__dict__.pop(name, None)

    def _refuse_hidden(self, name: str) -> None:
        if name in self._hidden:
            raise UnkeptError(
                f"the compiled step did not store the buffer {self._hidden[name]!r}: name it in "
                "net.compile(keep=[...]) or Trainer(..., keep=[...]), or call net.forward_pass() "
                "and net.backward_pass(), which store all buffers"
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse_hidden(name)
        raise AttributeError(
            f"there is no buffer {name!r}; there are {', '.join(self._names) or 'none'}"
        )

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            name, _, rest = item.partition(".")
            return name in self._names and (not rest or rest in self.__dict__[name])
        return any(item is each for each in self)

    def keys(self) -> list[str]:
        """Return the names."""
        return list(self._names)

    def values(self) -> Iterator[Any]:
        """Return the buffers in order."""
        return iter(self)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return pairs of names and buffers, in order."""
        return zip(self._names, self, strict=True)

    def _asdict(self) -> dict[str, Any]:
        return dict(self.items())

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._names]

    def __repr__(self) -> str:
        return f"<BufferView: {', '.join(self._names)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return BufferView, (self._names, list(self), self._full_buffer, self._contexts)
