"""Stage 6 calls no rule: plans have the forms of kernels, which emission only prints."""

import dataclasses
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

import geon
from geon.transformers.kernels.ir.nest import Fill
from geon.transformers.kernels.scans import slp_cost
from geon.transformers.loops import from_nest
from geon.transformers.loops.rules import cpu, gpu, schedule_rule
from geon.transformers.lowering.planning.cost_report import predictions, written_place
from geon.transformers.lowering.planning.kernel_forms import FormChoice, choice, trees_in
from geon.transformers.lowering.planning.plan import place_plan
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from geon.transformers.native.emit import form_table
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.machine.measured_machine import MODEL
from geon.transformers.native.products import (
    described_product,
    epilogue_form,
    implicit_im2col,
    orientation,
    packing,
    packing_trees,
    product_analysis,
    product_form,
)
from geon.transformers.native.products.product_form import ProductForm
from geon.transformers.native.trees import kernel_forms, tree_choice
from geon.transformers.native.trees.kernel_forms import NestTree
from geon.transformers.native.vectors import nontemporal_stores, scan_copies, vectorisable
from geon.transformers.native.vectors.scan_copies import ScanForm
from geon.transformers.pycuda.emit import kernel_parts
from geon.transformers.pycuda.emit.cuda_module import make_module as make_cuda_module
from geon.transformers.pycuda.kernels import library_kernels, split_reductions
from geon.transformers.pycuda.kernels import tree_choice as gpu_tree_choice
from geon.transformers.pycuda.kernels.library_kernels import PrefixForm
from geon.transformers.pycuda.kernels.nest_text import OrderedRows
from geon.transformers.pycuda.kernels.scattering import ScatterStep
from geon.transformers.pycuda.kernels.sorting import LineSort
from geon.transformers.pycuda.kernels.tree_choice import TeamTree
from geon.transformers.pycuda.launches.launch_ir import LaunchVariants
from geon.transformers.pycuda.products import library_dispatch, loop_forms, product_forms
from geon.transformers.pycuda.products.attention import FusedAttention, half_of
from geon.transformers.pycuda.products.loop_forms import OneLaunch, one_launch, region_parts
from geon.transformers.pycuda.products.product_forms import PartialSums, TiledProduct
from geon.transformers.sizes import product_plan
from tests.golden.emitting import Cuda, Native
from tests.golden.programs import PROGRAMS

CHOOSERS = {  # files whose functions choose how kernels run
    m.__file__
    for m in (
        from_nest,
        form_table,
        kernel_forms,
        tree_choice,
        gpu_tree_choice,
        slp_cost,
        epilogue_form,
        packing,
        packing_trees,
        product_analysis,
    )
}
PRODUCTS = (
    described_product.describe_product,
    implicit_im2col.contiguous_run,
    implicit_im2col.find_band,
    implicit_im2col.has_long_runs,
    implicit_im2col.overlap,
    orientation.analyse_product,
    orientation.orient_product,
    product_form.product_form,
    product_plan.is_thin,
    product_plan.may_read_in_place,
    product_plan.plan_product,
    vectorisable.are_stored,
)
CALLS = library_kernels.call_forms, *library_kernels.FORMS.values()
CHOICES = {  # functions of other files that do
    each.__code__
    for each in (
        nontemporal_stores.passing,
        scan_copies.scan_form,
        scan_copies.copies,
        split_reductions.division_of,
        product_forms.product_forms,
        product_forms.tiles_for,
        product_forms.large_tiles,
        library_dispatch.library_work,
        half_of,
        choice,
        region_parts,
        *CALLS,
        *PRODUCTS,
    )
}
CHOICES |= {schedule_rule.applied.__code__} | {
    function.__code__
    for rules in (cpu.RULES, cpu.COMPILED_RULES, cpu.COMPILED_COLUMN_RULES, gpu.RULES)
    for rule in rules
    for function in (rule.sites, rule.apply)
}


def choosers_called(run):
    """The functions that choose how kernels run, with the number of their calls in ``run``."""
    called = Counter()

    def note(frame, event, argument):
        code = frame.f_code
        if code in CHOICES or code.co_filename in CHOOSERS:
            called[f"{Path(code.co_filename).name}:{code.co_name}"] += 1

    before = sys.gettrace()
    sys.settrace(note)  # as it returns nothing, it is called where functions begin only
    try:
        run()
    finally:
        sys.settrace(before)
    return called


def ring():
    """A scan of neighbours on a ring, whose carries are in vectors."""
    t, r = geon.Axis("T"), geon.Axis("R", 60)
    force, start = geon.placeholder([t]), geon.placeholder([r])

    def step(at, each):
        new = [at[k] + 0.01 * ((at[k - 59] - at[k - 2]) * at[k - 1] + each) for k in range(60)]
        return new, new[0]

    last, seen = geon.scan(step, [start[k] for k in range(60)], force)
    return [*last, seen], [force, start]


def various():
    """Pieces, a copy, choices by lengths, parts of sums, and nests in the body of a loop."""
    n, m, c = geon.Axis("N"), geon.Axis("M"), geon.Axis("C", 64)
    x, y, z = (geon.placeholder(axes) for axes in ([n, m], [n, c], [n, geon.Axis("K", 3)]))
    turned, _ = geon.scan(
        lambda h, each: (geon.softmax(h + each, c), ()), geon.sum(y, n), y, over=n
    )
    results = [
        geon.concat([x, x * 2], m) + 1,
        geon.concat([y, y * 2], c) + 1,
        geon.update(y, geon.sum(y, c), {c: 3}),
        geon.sum(geon.exp(x), m),
        geon.reorder(x, [m, n]) * 2,
        geon.softmax(x, m),
        geon.variance(z, "K"),
        geon.sum(x, n),
        geon.sum(x),
        turned,
    ]
    return results, [x, y, z]


def windows():
    """Convolutions read in place and in bands, slopes, and few columns of computed operands."""
    h, w, c, k = geon.Axis("H", 20), geon.Axis("W", 20), geon.Axis("C", 8), geon.Axis("K", 32)
    n, r, s = geon.Axis("N", 2), geon.Axis("R", 3), geon.Axis("S", 3)
    x, filters = geon.placeholder([n, h, w, c]), geon.placeholder([r, s, c, k])
    scales = geon.placeholder([c, geon.Axis("J", 5)])
    made = [
        geon.convolution(x, filters, {h: geon.Window(r, pad=p), w: geon.Window(s, pad=p)}, [c])
        for p in (0, 1)
    ]
    slopes = [geon.deriv(geon.sum(geon.tanh(each)), filters) for each in made]
    return [*made, *slopes, geon.dot(geon.exp(x), scales * 2)], [x, filters, scales]


def moved():
    """Sorts and scatters by open lengths and by given ones, running sums, and parts of products."""
    n, c, long = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("L", 2000)
    x, z, at = geon.placeholder([n, c]), geon.placeholder([long, c]), geon.placeholder([n], "int64")
    results = [geon.sort(x, n), geon.argsort(x, c), *geon.top_k(z, 2, long)]
    results += [geon.scatter(z, at, x, long, mode=mode) for mode in ("set", "add")]
    results += [geon.cumsum(x, n), geon.cumprod(x, n), geon.dot(z, geon.rename(z, {c: "D"}))]
    return results, [x, z, at]


def repeated():
    """A loop without end, a scan of sums whose rows decide about launches, and branches in it."""
    n, m, t = geon.Axis("N"), geon.Axis("M", 40), geon.Axis("T")
    x, each, ask = (
        geon.placeholder([n, m]),
        geon.placeholder([t, n, m]),
        geon.placeholder([], "int64"),
    )

    def step(h, e):
        ways = [lambda: geon.softmax(h + e, m), lambda: geon.cumprod(h, n)]
        return geon.case_of(ask, ways) + geon.sum(h), ()

    ended = geon.while_loop(
        lambda c: c["k"] < ask,
        lambda c: {"k": c["k"] + 1, "h": c["h"] + geon.sum(c["h"], m)},
        {"k": geon.constant(0), "h": x},
    )
    return [geon.scan(step, x, each, over=t)[0], ended["h"]], [x, each, ask]


OWN = {"repeated": repeated, "ring": ring, "various": various, "windows": windows, "moved": moved}
GOLDEN = ("block", "layer_norm_gradient", "embedding_step", "strided_slice_gradient")


def kinds_of(plan):
    """The kinds of parts of the forms of a plan and of its bodies."""
    found, left = set(), [form.parts for form in plan.forms.values()]
    while left:
        parts = left.pop()
        found |= {type(part) for part in parts}
        left += [part for part in parts if type(part) is tuple]
        left += [side for x in parts if isinstance(x, FormChoice) for side in (x.forms, x.others)]
        found |= {"packed" for x in parts if isinstance(x, ScanForm) and x.packed is not None}
    for inside in plan.inside.values():
        found.update(*map(kinds_of, inside.plans))
    return found


def stages(target, program):
    """The stages of a program on a target."""
    results, placeholders = program()
    return target().computation(results, *placeholders).stages()


@pytest.mark.parametrize(
    ("target", "emit", "kinds"),
    [
        (Native, make_module, {NestTree, FormChoice, Fill, ScanForm, "packed", tuple, ProductForm}),
        (
            Cuda,
            make_cuda_module,
            {
                TeamTree,
                FormChoice,
                Fill,
                TiledProduct,
                PartialSums,
                FusedAttention,
                OrderedRows,
                LineSort,
                ScatterStep,
                PrefixForm,
                OneLaunch,
            },
        ),
    ],
)
def test_emission_calls_no_rule(target, emit, kinds):
    seen = set()
    for name, program in {**OWN, **{name: PROGRAMS[name] for name in GOLDEN}}.items():
        made = stages(target, program)
        plan, linking = made.plan, made.linking
        seen |= kinds_of(plan)
        called = choosers_called(partial(emit, plan, linking, annotate=False))
        assert not called, f"{name}: {called}"
    assert seen == kinds


def predicted(plan, lengths, forms):
    """The predicted times of a plan's kernels, from the forms of a plan or from none."""
    where = written_place(plan.schedule)
    return predictions(plan.schedule, lengths, MODEL, 2, where, forms)


@pytest.mark.parametrize("target", [Native, Cuda])
def test_scratch_memory_calls_no_rule(target):
    """It is read from forms. Where lengths are open, the rules of plans run as in calls."""
    for name, program in {**OWN, **{name: PROGRAMS[name] for name in GOLDEN}}.items():
        made = stages(target, program)
        plan, names = made.plan, made.request.open_names
        found = choosers_called(partial(plan.schedule.target.scratch, plan.schedule, plan.forms))
        assert not found, f"{name}: {found}"
        called = choosers_called(partial(place_plan, plan, dict.fromkeys(names, 70), 2))
        assert called.keys() <= ({"product_plan.py:plan_product"} if names else set()), name


def test_predictions_call_no_rule():
    """They read forms; without any, the cost model plans products by itself."""
    for program in (ring, windows):
        made = stages(Native, program)
        lengths = dict.fromkeys(made.request.open_names, 70)
        assert not choosers_called(partial(predicted, made.plan, lengths, made.plan))
    called = choosers_called(partial(predicted, stages(Native, windows).plan, {}, None))
    assert called.keys() == {"product_plan.py:plan_product"}


@pytest.mark.parametrize("target", [Native, Cuda])
def test_the_plan_calls_rules(target):
    """Where the rules are called, the functions above see it."""
    made = stages(target, various)
    assert made.schedule
    called = choosers_called(lambda: made.plan)
    assert any("forms_of" in each for each in called)
    if target is Native:
        called = choosers_called(lambda: stages(Native, windows).plan)
        seen = {name.split(":")[1] for name in called}
        assert {each.__name__ for each in PRODUCTS} <= seen
    if target is Cuda:
        called = choosers_called(lambda: stages(Cuda, PROGRAMS["block"]).plan)
        assert {"product_forms.py:product_forms", "attention.py:half_of"} <= called.keys()
        assert "loop_forms.py:region_parts" in choosers_called(lambda: stages(Cuda, repeated).plan)
        called = choosers_called(lambda: stages(Cuda, moved).plan)
        seen = {name.split(":")[1] for name in called}
        assert {"choice", *(each.__name__ for each in CALLS)} <= seen


@pytest.mark.parametrize("target", [Native, Cuda])
def test_kernels_of_one_structure_have_one_form(target):
    leaves = [geon.placeholder([geon.Axis(name, 4), geon.Axis("C", 40)]) for name in "NMK"]
    results = [geon.softmax(x, "C") for x in leaves[:2]] + [geon.sum(leaves[2], "C")]
    forms = target().computation(results, *leaves).plan.forms.values()
    first, second, other = forms
    assert first is second and first is not other


@pytest.mark.parametrize("target", [Native, Cuda])
def test_forms_that_do_not_fit_their_kernels_are_refused(target):
    plan = stages(target, various).plan
    verify_plan(plan)
    nests = [k for k in plan.schedule.kernels if k.kind == "nest"]
    first, second = (next(k for k in nests if len(k.work.operands) == n) for n in (2, 3))

    def broken(kernel, **changes):
        form = dataclasses.replace(plan.forms[kernel.op], **changes)
        return dataclasses.replace(plan, forms={**plan.forms, kernel.op: form})

    with pytest.raises(geon.PlanError, match="another structure"):
        verify_plan(broken(first, work=second.work))
    with pytest.raises(geon.PlanError, match="stores operands"):
        verify_plan(broken(first, parts=()))
    with pytest.raises(geon.PlanError, match="its nest does not|stores operands"):
        verify_plan(broken(first, parts=plan.forms[second.op].parts))


def test_only_variants_for_short_rows_may_read_results_that_they_stored():
    """They keep no values of rows, and the nest of long rows does."""
    x = geon.placeholder([geon.Axis("N"), geon.Axis("C")], "float16")
    y = geon.tanh(x)
    total = geon.sum(geon.cast(y, "float64"))
    plan = Native().computation([total, geon.logsumexp(geon.tanh(y), "C"), y], x).plan
    verify_plan(plan)
    (op,) = (kernel.op for kernel in plan.schedule.kernels if kernel.work.short is not None)
    (each,) = plan.forms[op].parts
    for parts in (each.forms, (each._replace(others=each.forms),)):
        form = dataclasses.replace(plan.forms[op], parts=parts)
        with pytest.raises(geon.PlanError, match=r"loads operands \[0\], and its nest does not"):
            verify_plan(dataclasses.replace(plan, forms={**plan.forms, op: form}))


def test_stores_past_the_caches_of_what_is_read_are_refused():
    n = geon.Axis("N", 1 << 24)
    x, w = geon.placeholder([n]), geon.Variable([n], initial_value=0)
    plan = Native().computation([x + 1, geon.assign(w, w + 1)], x).plan
    verify_plan(plan)
    first, second = (k.op for k in plan.schedule.kernels)
    form = dataclasses.replace(plan.forms[second], parts=plan.forms[first].parts)
    with pytest.raises(geon.PlanError, match="past the caches, and its nest reads"):
        verify_plan(dataclasses.replace(plan, forms={**plan.forms, second: form}))
    with pytest.raises(geon.PlanError, match="share memory in different ways"):
        verify_plan(dataclasses.replace(plan, forms=dict.fromkeys(plan.forms, form)))


def test_plans_are_for_vectors_of_one_width():
    plan = stages(Native, various).plan
    assert plan.vector_bytes == 64 and for_vectors(plan, 64) is plan
    other = for_vectors(plan, 32)
    assert other.vector_bytes == 32 and other.homes.keys() == plan.homes.keys()
    widths = {
        tree.tree.vectors.vector_bytes
        for kernel in other.schedule.kernels
        if kernel.kind == "nest"
        for tree in trees_in(other.forms[kernel.op].parts)
    }
    assert widths == {32}


@pytest.mark.parametrize("target", [Native, Cuda])
def test_rules_are_applied_once_for_a_structure(target):
    c = geon.Axis("C", 40)

    def applied(count):
        leaves = [geon.placeholder([geon.Axis(f"N{k}", 4), c]) for k in range(count)]
        made = target().computation([geon.softmax(x, c) for x in leaves], *leaves).stages()
        assert len(made.schedule.kernels) == count
        return choosers_called(lambda: made.plan)["schedule_rule.py:applied"]

    assert applied(1) == applied(3) > 0


def test_products_of_slices_have_one_form():
    """Callers add the starts of slices to pointers; the form of another product is refused."""
    t, m, k, n = map(geon.Axis, "TMKN", (3, 40, 50, 60))
    x, w, v = geon.placeholder([t, m, k]), geon.placeholder([k, n]), geon.placeholder([m, k])
    results = [geon.dot(x[{t: number}], w) for number in range(3)]
    plan = Native().computation([*results, geon.dot(v * 2, w)], x, w, v).plan
    forms = [plan.forms[kernel.op] for kernel in plan.schedule.kernels]
    assert len(forms) == 4 and len(set(forms)) == 2
    verify_plan(plan)
    last = plan.schedule.kernels[-1].op
    wrong = {**plan.forms, last: next(form for form in forms if form is not plan.forms[last])}
    with pytest.raises(geon.PlanError, match="another structure"):
        verify_plan(dataclasses.replace(plan, forms=wrong))


def test_the_plan_has_the_launches_of_loops():
    """Open rows decide if a block runs a scan; a loop without end is several launches then."""
    made = stages(Cuda, repeated)
    forms = [made.plan.forms[k.op] for k in made.schedule.kernels if k.kind == "region"]
    scan, ended = [one_launch(form.parts) for form in forms]
    assert scan[0] and ended[0] and scan[1].shared > 0
    assert (scan[1].repeated, ended[1].repeated) == (False, True)
    steps = make_cuda_module(made.plan, made.linking, annotate=False).steps
    choices = [step.holds for step in steps if isinstance(step, LaunchVariants)]
    assert {scan[0], ended[0]} <= {*choices}
    results, placeholders = repeated()
    text = Cuda().computation(results, *placeholders).explain("schedule")
    assert "a block runs all kernels\n" in text and "in several launches" in text


@pytest.mark.parametrize("name", ["moved", "repeated", "various", "windows"])
def test_functions_have_the_shapes_by_which_loops_were_chosen(name, monkeypatch):
    seen = 0

    def checked(print_parts, shape, form, names):
        nonlocal seen
        parts, expected = print_parts(form, names), shape(form, names.kernel.work)
        if expected is not None:
            (function,) = parts
            own = function.grid, function.threads, function.meets
            assert own == (expected.grid, expected.threads, expected.meets)
            seen += 1
        return parts

    for kind, shape in loop_forms.SHAPES.items():
        printed = partial(checked, kernel_parts.WRITERS[kind], shape)
        monkeypatch.setitem(kernel_parts.WRITERS, kind, printed)
    made = stages(Cuda, OWN[name])
    make_cuda_module(made.plan, made.linking, annotate=False)
    assert seen
