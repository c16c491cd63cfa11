# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""Peak bytes of training steps beside PyTorch and JAX: ``python -m benchmarks.peers.memory``.

Counted are the bytes that ten steps take beside inputs, parameters and the state of optimisers:

- geon: ``f.peak_bytes()`` of a program for these lengths, and of these the bytes of values: those
  without the memory that kernels work in and the copies that they keep, such as packed operands;
- PyTorch: the most bytes that its allocator has given out at one time during ten steps, less those
  from before them; gradients are freed after each step;
- JAX: temporary and output bytes of the compiled step, less those of outputs that take the memory
  of donated arguments.

What libraries below PyTorch and JAX allocate past their allocators, such as operands that they pack
for products, is not counted for these. So two ratios are printed: of all that geon takes, which
counts more for geon than for its peers, and of its values alone, which counts less for it where a
peer's allocator gives out memory to work in.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import data_nets
from .report import table
from .workloads import NETS, Sizes

RATE = 0.01
STEPS = 10
COLUMNS = {"geon": "geon", "values": "of values", "torch": "PyTorch", "jax": "JAX"}


@dataclass(frozen=True)
class Case:
    """A training step: a network of ``data_nets`` by its ``kind``, or blocks of these sizes."""

    title: str
    kind: str
    sizes: Sizes
    small: Sizes
    function: str = "gelu"
    bias: bool = True
    checkpoint: bool = False


BLOCKS = {"count": 16, "rows": 1024, "width": 128, "hidden": 512}
SMALL_BLOCKS = {"count": 3, "rows": 64, "width": 8, "hidden": 16}
CASES = [
    *(
        Case(
            f"16 blocks h + {function}(h w{' + b' * bias}) v{', checkpointed' * checkpoint}",
            "blocks", BLOCKS, SMALL_BLOCKS, function, bias, checkpoint,
        )
        for function, bias in (("tanh", False), ("tanh", True), ("relu", True), ("gelu", True),
                               ("silu", True))
        for checkpoint in (False, True)
    ),
    *(
        Case(net.title, net.kind, net.sizes, net.small)
        for net in NETS
        if net.kind.endswith("_step")
    ),
]  # fmt: skip


def values_of_blocks(sizes: Sizes) -> list[np.ndarray[Any, Any]]:
    """Return the first weights of one block."""
    random = np.random.default_rng(0)
    width, hidden = sizes["width"], sizes["hidden"]
    w, v = (random.normal(0, 0.05, shape) for shape in ((width, hidden), (hidden, width)))
    return [w.astype("f4"), np.zeros(hidden, "f4"), v.astype("f4")]


def values_alone(f: Any) -> int:
    """Return the bytes of a plan's values and results, at the time they take most."""
    from geon.transformers.runtime.arena import place

    plan = f.plan  # specialised: no length is open
    sizes = [0 if each.scratch else each.bytes({}, 1) for each in plan.buffers]
    _, taken = place(sizes, plan.lifetimes, plan.schedule.target.alignment)
    outputs = plan.schedule.program.outputs
    return taken + sum(int(op.axes.size) * op.dtype.itemsize for op in outputs)


def by_geon(case: Case, sizes: Sizes) -> dict[str, int]:
    """Return the peak of geon's program, and of its values."""
    import geon
    from geon.frontends.neon import axis as ax

    from .geon_nets import STEPS as NET_STEPS

    transformer = geon.make_transformer(os.environ.get("GEON_TRANSFORMER", "native"))
    if case.kind != "blocks":
        made = NET_STEPS[case.kind](sizes)
        cost, effects, _ = made.step()
        f = transformer.computation([cost, *effects], made.x, made.t, specialize=made.lengths)
        return {"geon": int(f.peak_bytes()), "values": values_alone(f)}
    wide, hidden = geon.Axis("E", sizes["width"]), geon.Axis("F", sizes["hidden"])
    x = geon.placeholder([ax.N, wide], name="x")
    function, h, trained = getattr(geon, case.function), x, []
    wrap: Any = geon.checkpoint if case.checkpoint else lambda block: block
    for _ in range(sizes["count"]):
        axes = ([wide, hidden], [hidden], [hidden, wide])
        given = zip(axes, values_of_blocks(sizes), strict=True)
        w, b, v = (geon.Variable(own, initial_value=value) for own, value in given)

        def block(h: Any, w: Any = w, b: Any = b, v: Any = v) -> Any:
            y = geon.dot(h, w)
            return h + geon.dot(function(y + b if case.bias else y), v)

        h = wrap(block)(h)
        trained += [w, b, v] if case.bias else [w, v]
    loss = geon.mean(geon.square(h))
    steps = [
        geon.assign(p, p - RATE * slope)
        for p, slope in zip(trained, geon.deriv(loss, trained), strict=True)
    ]
    f = transformer.computation([loss, *steps], x, specialize={ax.N: sizes["rows"]})
    return {"geon": int(f.peak_bytes()), "values": values_alone(f)}


def by_torch(case: Case, sizes: Sizes) -> dict[str, int]:
    """Return the peak of PyTorch's allocator, without compilation."""
    import torch
    from torch.utils.checkpoint import checkpoint

    from .torch_nets import STEPS as NET_STEPS

    if case.kind == "blocks":
        function = getattr(torch.nn.functional, case.function)
        blocks = [
            [torch.nn.Parameter(torch.from_numpy(value)) for value in values_of_blocks(sizes)]
            for _ in range(sizes["count"])
        ]
        trained = [p for w, b, v in blocks for p in ([w, b, v] if case.bias else [w, v])]
        optimiser: Any = torch.optim.SGD(trained, RATE)
        x = torch.ones(sizes["rows"], sizes["width"])

        def block(h: Any, w: Any, b: Any, v: Any) -> Any:
            y = torch.addmm(b, h, w) if case.bias else h @ w
            return h + function(y) @ v

        def loss() -> Any:
            h = x
            for own in blocks:
                h = checkpoint(block, h, *own, use_reentrant=False) if case.checkpoint else block(
                    h, *own
                )  # fmt: skip
            return h.square().mean()

    else:
        given = getattr(data_nets, case.kind)(np.random.default_rng(0), **sizes)
        made = NET_STEPS[case.kind](sizes, given["values"])
        optimiser = made.optimiser
        fed = [torch.from_numpy(np.ascontiguousarray(given[name])) for name in ("x", "t")]

        def loss() -> Any:
            return made.loss(*fed, made.trained, made.kept)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss().backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    step()  # makes the optimiser's state
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        for _ in range(STEPS):
            step()
    now = peak = 0
    events = [
        each for each in profile.profiler.kineto_results.events() if each.name() == "[memory]"
    ]
    for event in sorted(events, key=lambda each: each.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return {"torch": peak}


def by_jax(case: Case, sizes: Sizes) -> dict[str, int]:
    """Return what the compiler of JAX says that its program takes."""
    import jax
    import jax.numpy as jnp

    from .jax_nets import STEPS as NET_STEPS

    if case.kind == "blocks":
        functions = {"tanh": jnp.tanh, "gelu": lambda y: jax.nn.gelu(y, approximate=False)}
        function = functions.get(case.function) or getattr(jax.nn, case.function)

        def block(h: Any, own: Any) -> Any:
            w, b, v = own
            return h + function(h @ w + b if case.bias else h @ w) @ v

        each = jax.checkpoint(block) if case.checkpoint else block

        def loss(state: Any, x: Any) -> Any:
            for own in state:
                x = each(x, own)
            return jnp.mean(jnp.square(x))

        def step(state: Any, x: Any) -> Any:
            cost, slopes = jax.value_and_grad(loss)(state, x)
            return cost, jax.tree.map(lambda p, g: p - RATE * g, state, slopes)

        state: Any = [values_of_blocks(sizes) for _ in range(sizes["count"])]
        fed: list[Any] = [np.ones((sizes["rows"], sizes["width"]), "f4")]
    else:
        given = getattr(data_nets, case.kind)(np.random.default_rng(0), **sizes)
        step, state, _ = NET_STEPS[case.kind](sizes, given["values"])
        fed = [given["x"], given["t"]]
    found = jax.jit(step, donate_argnums=0).lower(state, *fed).compile().memory_analysis()
    taken = found.temp_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    return {"jax": int(taken)}


BY: dict[str, Callable[[Case, Sizes], dict[str, int]]] = {
    "geon": by_geon, "torch": by_torch, "jax": by_jax,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> list[dict[str, int]]:
    """Print the table, and return its numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.memory", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with it in their title")
    parser.add_argument("--quick", action="store_true", help="a trial run on small sizes")
    chosen = parser.parse_args(argv)
    there = [name for name in BY if importlib.util.find_spec(name) is not None]
    found, rows = [], []
    for case in CASES:
        if chosen.only not in case.title:
            continue
        sizes = case.small if chosen.quick else case.sizes
        peaks: dict[str, int] = {}
        for name in there:
            peaks |= BY[name](case, sizes)
        found.append(peaks)
        best = min((peaks[name] for name in there[1:]), default=None)
        of = ("geon", "values")
        ratios = ["–" if best is None else f"{peaks[name] / best:.2f}" for name in of]
        cells = [f"{peaks[name] / 1e6:.1f}" if name in peaks else "–" for name in COLUMNS]
        rows.append([case.title, *cells, *ratios])
    head = ["ten training steps, MB", *COLUMNS.values(), "geon / better peer", "values / it"]
    print("\n".join(table(head, rows)))
    return found


if __name__ == "__main__":
    main()
