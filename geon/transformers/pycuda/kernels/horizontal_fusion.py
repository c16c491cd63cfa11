"""Horizontal fusion: small independent kernels as one launch that divides its blocks among them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...loops.rules.teams import MAX_SHARED_BYTES
from ...lowering.fusion.kernel import Kernel
from ...printing.nests.loop_lines import indent
from ..launches.launch_ir import NOMINAL_DEVICE, Grid, LaunchVariants
from ..launches.naming import NAME, CudaFunction, Joined, Part, kernel_head

# Max. blocks, if known, of a kernel that is joined with others: more fill the device by themselves.
MAX_JOINED_BLOCKS = NOMINAL_DEVICE.full_blocks(registers=32)
MAX_LAUNCH_PARAMETERS = 448  # max. 8-byte parameters of a launch; CUDA allows 512


def join_chains(chains: Sequence[tuple[Kernel, list[Part]]]) -> list[tuple[list[int], list[Part]]]:
    """Join concurrent kernels of equal shape; return pairs (numbers of the kernels, parts)."""
    shapes: dict[Hashable, list[int]] = {}
    for number, (kernel, parts) in enumerate(chains):
        shape = shape_of(parts) if kernel.kind == "nest" else None
        shapes.setdefault(number if shape is None else shape, []).append(number)
    found: list[tuple[list[int], list[Part]]] = []
    for numbers in shapes.values():
        group = [chains[number][1] for number in numbers]
        size = fitting(group)
        for first in range(0, len(group), size):
            here = group[first : first + size]
            parts = here[0] if len(here) == 1 else _zipped(here)
            found.append((numbers[first : first + size], parts))
    return found


def joined_text(functions: Sequence[CudaFunction], names: Sequence[str]) -> str:
    """Return a kernel's text that divides its blocks among the device functions ``names``."""
    declared, body = [], ["int64_t first = 0, block = blockIdx.x;"]
    for number, (function, name) in enumerate(zip(functions, names, strict=True)):
        given = [f"x{number}_{k}" for k in range(len(function.parameters))]
        declared += [
            f"{p.ctype} {'*' if p.pointer else ''}{each}"
            for p, each in zip(function.parameters, given, strict=True)
        ]
        count = f"blocks{number}"
        own = [*given, "{(unsigned)(block - first)}", f"{{(unsigned){count}}}"]
        body += [
            f"if (block >= first && block < first + {count})",
            f"    {name}({', '.join(own)});",
        ]
        body.append(f"first += {count};")
    counts = [f"int64_t blocks{number}" for number in range(len(functions))]
    head = kernel_head(NAME, ", ".join([*declared, *counts]), functions[0].threads)
    return "\n".join([head, "{", *indent(body[:-1]), "}", ""])


def shape_of(parts: Sequence[Part]) -> Hashable:
    """Return a key that is equal for parts that can be joined; None for parts that cannot."""
    found: list[Hashable] = []
    for part in parts:
        if isinstance(part, CudaFunction):
            apart = part.shared is None or part.stages is not None or part.together > 1
            if apart or not is_small(part.grid):
                return None
            found.append(part.threads)
        elif isinstance(part, LaunchVariants):
            both = shape_of(part.steps), shape_of(part.others)
            if None in both:
                return None
            found.append((part.holds, *both))
        else:
            return None
    return tuple(found)


def is_small(grid: Grid) -> bool:
    """Return True if a launch has at most ``MAX_JOINED_BLOCKS`` blocks, or an open number of
    them.
    """
    if not isinstance(grid.units, int):
        return True
    return min(-(-grid.units // grid.each), grid.most) <= MAX_JOINED_BLOCKS


def fitting(group: Sequence[Sequence[Part]]) -> int:
    """Return how many kernels of a group fit one launch, by shared memory and parameters."""
    functions = [function for parts in group for function in _functions(parts)]
    shared = max([function.shared or 0 for function in functions], default=0)
    parameters = max([len(function.parameters) + 1 for function in functions], default=1)
    most = len(group) if shared == 0 else MAX_SHARED_BYTES // shared
    return max(min(most, MAX_LAUNCH_PARAMETERS // parameters), 1)


def _functions(parts: Sequence[Part]) -> list[CudaFunction]:
    """Return all functions in parts, including both sides of choices."""
    found: list[CudaFunction] = []
    for part in parts:
        if isinstance(part, CudaFunction):
            found.append(part)
        elif isinstance(part, LaunchVariants):
            found += [*_functions(part.steps), *_functions(part.others)]
    return found


def _zipped(group: Sequence[Sequence[Part]]) -> list[Part]:
    """Join the parts at equal positions of several kernels."""
    found: list[Part] = []
    for like in zip(*group, strict=True):
        first = like[0]
        if isinstance(first, LaunchVariants):
            both = [
                tuple(_zipped([getattr(each, side) for each in like]))
                for side in ("steps", "others")
            ]
            found.append(LaunchVariants(first.holds, *both))
        else:
            found.append(Joined(tuple([each for each in like if isinstance(each, CudaFunction)])))
    return found
