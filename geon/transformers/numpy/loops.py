"""NumPy statements of regions: Python loops and branches around functions of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...op_graph.op_graph import Leaf
from ...op_graph.regions.scan_op import ScanAttributes
from ...op_graph.regions.while_op import WhileAttributes
from ..kernels.ir.nest import WHILE, Region
from ..lowering.planning.plan import Inside, Plan
from ..lowering.planning.schedule import Kernel
from .arrays import ArrayOperands
from .split_functions import Line, comment, computing, names_text

Write = Callable[[ArrayOperands], None]  # writes the statements of all kernels of a plan


def region_statements(work: ArrayOperands, kernel: Kernel, write: Write) -> list[str]:
    """Return the statements that run a region; its bodies become functions of the module."""
    assert isinstance(kernel.work, Region)
    return REGIONS[kernel.work.op.primitive.name](work, kernel, write)


def case_statements(work: ArrayOperands, kernel: Kernel, write: Write) -> list[str]:
    """Return the statements that run one of several branches."""
    assert isinstance(kernel.work, Region)
    region, inside = kernel.work, work.plan.inside[kernel.op]
    given = [work.operand(arg) for arg in region.op.args]
    results = [work.array(op) for op in kernel.results]
    lines = []
    for k, body in enumerate(region.bodies):
        number, bound = body_functions(work, inside, k, body.leaves, write)
        word = "if" if k == 0 else "elif"
        lines.append(f"{word} {given[0]} == {k}:")
        lines.append(f"    step_{number}({', '.join([bound, *given, *results])})")
    return ["\n".join(lines)]


def loop_statements(work: ArrayOperands, kernel: Kernel, write: Write) -> list[str]:
    """Return the statements that run a scan."""
    assert isinstance(kernel.work, Region)
    region, inside = kernel.work, work.plan.inside[kernel.op]
    a: ScanAttributes = region.op.attrs
    number, bound = body_functions(work, inside, 0, region.bodies[0].leaves[:-1], write)
    count, turn = work.length(a.axis.expression), f"t{number}"
    before: list[str] = []
    made = dict(zip(region.numbers, kernel.results, strict=True))
    results = {k: work.array(op) for k, op in made.items()}
    given = [work.operand(arg) for arg in region.op.args]
    stacks = [f"{name}[{turn}, ...]" for name in given[a.carries : a.before_captures]]
    stacks += given[a.captures]
    after: list[str] = []
    if a.counted:
        steps = f"steps{number}"
        before.append(f"{steps} = rt.steps_of({given[-1]}, {count})")
        count = steps
        after += [f"{results[k]}[{count}:] = 0" for k in sorted(results) if k >= a.carries]
    stored = [f"{results[k]}[{turn}, ...]" for k in sorted(results) if k >= a.carries]
    order = f"range({count})" + ("[::-1]" if a.reverse else "")
    note = f"  # along {comment(a.axis.name)}{', backwards' if a.reverse else ''}"
    if not a.carries:
        call = ", ".join([bound, *stacks, *stored])
        loop = [f"for {turn} in rt.each({order}):{note}", f"    step_{number}({call})"]
        return ["\n".join([*before, *_with_steps(kernel, a.axis.name, turn, loop), *after])]
    pairs = []
    for k in range(a.carries):
        both = [results[k]] if k in results else []
        both += [work.carry_buffer(each, region.op.bodies[0].results[k])
                 for each in inside.spare[k]]  # fmt: skip
        pairs.append(names_text([both[0], both[-1]]))
        if k in region.held:
            before.append(f"np.copyto({both[0]}, {given[k]})")
            given[k] = both[0]
    h, w = f"h{number}", f"w{number}"
    call = ", ".join([bound, f"*{h}", *stacks, f"*{w}", *stored])
    lines = [
        *before,
        f"{h} = {names_text(given[: a.carries])}",
        f"for {w}, {turn} in zip(rt.to_and_fro({names_text(pairs)}, {count}), {order}):{note}",
        f"    step_{number}({call})",
        f"    {h} = {w}",
    ]
    loop_start = len(before) + 1
    lines[loop_start:] = _with_steps(kernel, a.axis.name, turn, lines[loop_start:])
    finals = [results.get(k, "None") for k in range(a.carries)]
    if results.keys() & set(range(a.carries)):
        lines.append(f"rt.put_carries({h}, {names_text(finals)})")
    return ["\n".join([*lines, *after])]


def while_statements(work: ArrayOperands, kernel: Kernel, write: Write) -> list[str]:
    """Return the statements that run a while loop."""
    assert isinstance(kernel.work, Region)
    region, inside = kernel.work, work.plan.inside[kernel.op]
    a: WhileAttributes = region.op.attrs
    assert inside.truth is not None
    test, test_bound = body_functions(work, inside, 0, region.bodies[0].leaves[:-1], write)
    number, bound = body_functions(work, inside, 1, region.bodies[1].leaves[:-1], write)
    results = {k: work.array(op) for k, op in zip(region.numbers, kernel.results, strict=True)}
    given = [work.operand(arg) for arg in region.op.args]
    truth = work.carry_buffer(inside.truth, region.op.bodies[0].results[0])
    pairs, before = [], []
    for k in range(a.carries):
        both = [results[k]] if k in results else []
        both += [work.carry_buffer(each, region.op.bodies[1].results[k])
                 for each in inside.spare[k]]  # fmt: skip
        pairs.append(names_text([both[0], both[-1]]))
        if k in region.held:
            before.append(f"np.copyto({both[0]}, {given[k]})")
            given[k] = both[0]
    h, w, turn = f"h{number}", f"w{number}", f"t{number}"
    stacks = [results[k] for k in sorted(results) if k > a.carries]
    read = ", ".join([f"*{h}", *given[a.carries :]])
    call = ", ".join([bound, read, f"*{w}", *(f"{stack}[{turn}, ...]" for stack in stacks)])
    lines = [
        *before,
        f"{h} = {names_text(given[: a.carries])}",
        f"for {turn}, {w} in enumerate(rt.turns({names_text(pairs)}, {a.limit})):",
        f"    step_{test}({test_bound}, {read}, {truth})",
        f"    if not {truth}:",
        *(f"        {stack}[{turn}:] = 0" for stack in stacks),
        "        break",
        f"    step_{number}({call})",
        f"    {h} = {w}",
    ]
    loop_start = len(before) + 1
    lines[loop_start:] = _with_steps(kernel, WHILE, turn, lines[loop_start:])
    finals = [results.get(k, "None") for k in range(a.carries)]
    if results.keys() & set(range(a.carries)):
        lines.append(f"rt.put_carries({h}, {names_text(finals)})")
    return ["\n".join(lines)]


def _with_steps(kernel: Kernel, axis: str, turn: str, loop: list[str]) -> list[str]:
    """Return a loop that adds its step to errors, if its body can raise."""
    if not kernel.raises:
        return loop
    failed = f"    raise rt.at_step(error, {axis!r}, {turn}) from None"
    return ["try:", *(f"    {line}" for line in loop), "except rt.GeonError as error:", failed]


REGIONS = {"scan": loop_statements, "while": while_statements, "case": case_statements}


def body_functions(
    work: ArrayOperands, inside: Inside, k: int, leaves: Sequence[Leaf], write: Write
) -> tuple[int, str]:
    """Emit the functions of body ``k``; return their number and the name of its bound arrays."""
    number = work.shared_counts["step"]
    work.shared_counts["step"] = number + 1
    inner = ArrayOperands(inside.plans[k], {}, work.constants, work, inside.first[k])
    inner.first_step = work.first_step + inside.steps[k]
    work.functions += step_functions(inner, leaves, number, write)
    made = f"bind_step_{number}(arena, offsets, constants, L)"
    return number, work.make(f"g{number}", made, "bind")


def step_functions(
    inner: ArrayOperands, leaves: Sequence[Leaf], number: int, write: Write
) -> list[Line]:
    """Return the function that makes the arrays of a body, and the one that computes it."""
    plan: Plan = inner.plan
    for k, leaf in enumerate(leaves):
        inner.leaves[leaf] = f"x{k}"
        inner.scopes[f"x{k}"] = "run"
    results = [f"r{k}" for k in range(len(plan.schedule.program.outputs))]
    inner.scopes.update(dict.fromkeys(results, "run"))
    inner.scopes["L"] = "bind"
    write(inner)
    name = f"step_{number}"
    inputs = [*inner.leaves.values(), *results]
    bound, functions = computing(inner.run, inner.scopes, inputs, [], name)
    lines: list[Line] = [*inner.functions]
    lines += [(f"def bind_{name}(arena, offsets, constants, L):", None), *inner.carve_lines()]
    lines += [(f"    {text}", op) for text, op in inner.bind]
    return [*lines, (f"    return {bound}", None), ("", None), *functions, ("", None)]
