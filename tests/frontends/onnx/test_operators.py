"""Operators that no published node case covers, against the reference evaluator of ``onnx``."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import geon
from geon.frontends.onnx import backend, load, save
from geon.frontends.positional.values import UnknownValueError

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.standard_normal((5, 4)).astype(np.float32)
IMAGES = RANDOM.standard_normal((2, 3, 7, 8)).astype(np.float32)
NUMPY = geon.NumPyTransformer()


def model_of(operator, inputs, outputs=1, domain="ai.onnx.ml", open_rows=False, **attributes):
    names = [f"i{k}" for k in range(len(inputs))]
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            ["N", *array.shape[1:]] if open_rows else array.shape,
        )
        for name, array in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph(
        [node], "graph", infos, [onnx.ValueInfoProto(name=name) for name in results]
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def computed(operator, *inputs, transformer=NUMPY, **options):
    model = model_of(operator, inputs, **options)
    return backend.prepare(model, transformer=transformer).run(list(inputs))


def check(operator, *inputs, **options):
    found = computed(operator, *inputs, **options)
    feeds = {f"i{k}": array for k, array in enumerate(inputs)}
    expected = ReferenceEvaluator(model_of(operator, inputs, **options)).run(None, feeds)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, np.reshape(theirs, ours.shape), 1e-4, 1e-5)


SUPPORT = {
    "coefficients": RANDOM.standard_normal(12).tolist(),
    "support_vectors": RANDOM.standard_normal(24).tolist(),
    "kernel_params": [0.5, 0.1, 3.0],
}


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel):
    options = {**SUPPORT, "kernel_type": kernel}
    check(
        "SVMClassifier", ROWS, outputs=2, classlabels_ints=[3, 5, 9], rho=[0.1, 0.2, 0.3],
        vectors_per_class=[2, 3, 1], **options,
    )  # fmt: skip
    options["coefficients"] = options["coefficients"][:6]
    check("SVMRegressor", ROWS, n_supports=6, rho=[0.3], **options)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_linear_classifiers(transform):
    check(
        "LinearClassifier", ROWS, outputs=2, classlabels_ints=[3, 5, 9], post_transform=transform,
        coefficients=RANDOM.standard_normal(12).tolist(), intercepts=[0.1, 0.2, 0.3],
    )  # fmt: skip


def test_features():
    check("LinearRegressor", ROWS, coefficients=[0.5] * 8, intercepts=[0.1, 0.2], targets=2)
    check("Scaler", ROWS, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 2.0, 3.0, 1.0])
    for norm in ("MAX", "L1", "L2"):
        check("Normalizer", ROWS, norm=norm)
    check("FeatureVectorizer", ROWS, ROWS[:, :2], inputdimensions=[3, 4])
    gaps = np.where(ROWS > 0, ROWS, np.nan).astype(np.float32)
    values = {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": np.nan}
    check("Imputer", gaps, **values)
    check("OneHotEncoder", np.array([[1, 2], [3, 7]]), cats_int64s=[1, 2, 3])


def random_trees(modes, targets, trees=3, depth=4):
    """Attributes of random trees, with nodes as rows of columns."""
    nodes = {key: [] for key in ("treeids", "nodeids", "modes", "featureids", "values",
                                 "truenodeids", "falsenodeids")}  # fmt: skip
    leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    random = np.random.default_rng(len(modes))

    def grow(tree, levels, count):
        """Add a node at the next number and return how many there are then."""
        place, mode = len(nodes["modes"]), modes[random.integers(len(modes))]
        leaf = levels == 0 or random.random() < 0.2
        threshold = round(float(random.standard_normal()), 1)
        row = (tree, count, "LEAF" if leaf else mode, random.integers(4), threshold, 0, 0)
        for key, value in zip(nodes, row, strict=True):
            nodes[key].append(value)
        if leaf:
            for target in range(targets):
                row = (tree, count, target, float(random.standard_normal()))
                for key, value in zip(leaves, row, strict=True):
                    leaves[key].append(value)
            return count + 1
        middle = grow(tree, levels - 1, count + 1)
        nodes["truenodeids"][place], nodes["falsenodeids"][place] = count + 1, middle
        return grow(tree, levels - 1, middle)

    for tree in range(trees):
        grow(tree, depth, 0)
    made = {f"nodes_{key}": value for key, value in nodes.items()}
    return made | {f"target_{key}": value for key, value in leaves.items()}


def walked(attributes, x, targets):
    """Sums of the weights of the leaves that each row reaches, node by node."""
    tests = {"LEQ": np.less_equal, "LT": np.less, "GTE": np.greater_equal, "GT": np.greater,
             "EQ": np.equal, "NEQ": np.not_equal}  # fmt: skip
    nodes = {k[6:]: v for k, v in attributes.items() if k.startswith("nodes_")}
    leaves = {k[7:]: v for k, v in attributes.items() if k.startswith("target_")}
    rows = {key: k for k, key in enumerate(zip(nodes["treeids"], nodes["nodeids"], strict=True))}
    sums = np.zeros((len(x), targets))
    for number, row in enumerate(x):
        for tree in sorted(set(nodes["treeids"])):
            node = 0
            while (mode := nodes["modes"][k := rows[tree, node]]) != "LEAF":
                limit = np.float32(nodes["values"][k])
                goes = tests[mode.removeprefix("BRANCH_")](row[nodes["featureids"][k]], limit)
                node = nodes["truenodeids" if goes else "falsenodeids"][k]
            for each in zip(*leaves.values(), strict=True):
                if each[:2] == (tree, node):
                    sums[number, each[2]] += each[3]
    return sums


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


@pytest.mark.parametrize("modes", [*[[mode] for mode in MODES], MODES])
def test_trees_take_each_kind_of_comparison(modes):
    x = RANDOM.standard_normal((12, 4)).round(1).astype(np.float32)
    x[3, 1] = x[5, 2] = np.nan
    trees = random_trees(modes, 2)
    (found,) = computed("TreeEnsembleRegressor", x, n_targets=2, **trees)
    np.testing.assert_allclose(found, walked(trees, x, 2), 1e-5, 1e-6)


def test_trees_of_few_and_many_rows_agree():
    trees = random_trees(MODES[:1], 1)
    x = RANDOM.standard_normal((100, 4)).astype(np.float32)
    model = load(model_of("TreeEnsembleRegressor", [x], open_rows=True, n_targets=1, **trees))
    for transformer in (NUMPY, geon.NativeTransformer()):
        run = model.computation(transformer)
        whole = run(x)["o0"]
        np.testing.assert_allclose(whole[:5], walked(trees, x[:5], 1), 1e-5, 1e-6)
        np.testing.assert_allclose(whole[:5], run(x[:5])["o0"], 1e-6)


def test_a_tree_without_one_root_is_refused():
    trees = random_trees(MODES[:1], 1, trees=1)
    inner = [k for k, mode in enumerate(trees["nodes_modes"]) if mode != "LEAF"]
    trees["nodes_truenodeids"][inner[1]] = trees["nodes_nodeids"][inner[1]]
    with pytest.raises(geon.GeonError, match="roots; each needs one"):
        load(model_of("TreeEnsembleRegressor", [ROWS], n_targets=1, **trees))


def test_a_tree_with_a_cycle_below_its_root_is_refused():
    x = np.zeros((2, 1), np.float32)
    children = {"truenodeids": [1, 2, 1, 0], "falsenodeids": [3, 3, 3, 0]}
    nodes = {f"nodes_{name}": ids for name, ids in children.items()}
    nodes |= {"nodes_treeids": [0] * 4, "nodes_nodeids": [*range(4)], "nodes_featureids": [0] * 4}
    nodes |= {"nodes_modes": [*["BRANCH_LEQ"] * 3, "LEAF"], "nodes_values": [0.0] * 4}
    targets = {"target_treeids": [0], "target_nodeids": [3], "target_ids": [0]}
    with pytest.raises(geon.GeonError, match="the nodes of a tree form a cycle"):
        load(model_of("TreeEnsembleRegressor", [x], n_targets=1, target_weights=[1.0],
                      **nodes, **targets))  # fmt: skip


def test_indices_of_a_max_pool():
    for order in (0, 1):
        pooled, index = computed(
            "MaxPool", IMAGES, outputs=2, domain="", kernel_shape=[3, 2], strides=[2, 2],
            pads=[1, 0, 1, 1], dilations=[1, 2], storage_order=order,
        )  # fmt: skip
        turned = IMAGES.transpose(0, 1, 3, 2) if order else IMAGES
        np.testing.assert_array_equal(turned.reshape(-1)[index], pooled)


def test_pools_of_regions():
    regions = np.array([[0, 0, 0, 5, 6], [1, 1, 2, 7, 6], [0, 3, 3, 3, 3]], np.float32)
    (found,) = computed("MaxRoiPool", IMAGES, regions, domain="", pooled_shape=[2, 2])
    np.testing.assert_array_equal(found[0, :, 0, 0], IMAGES[0, :, :4, :3].max((1, 2)))
    np.testing.assert_array_equal(found[1, :, 1, 1], IMAGES[1, :, 4:7, 4:8].max((1, 2)))
    np.testing.assert_array_equal(found[2, :, 1, 0], IMAGES[0, :, 3, 3])


def test_a_length_that_depends_on_data_is_refused():
    with pytest.raises(UnknownValueError, match="must be known when the model is imported"):
        load(model_of("NonZero", [ROWS], domain=""))


@pytest.mark.parametrize("rows", [2, 4, 5])
def test_the_last_part_of_an_open_length_is_the_smaller_one(rows):
    check("Split", ROWS[:rows], outputs=2, domain="", open_rows=True, num_outputs=2)


def test_a_sort_of_an_open_length_is_read_back(tmp_path):
    x = geon.placeholder([geon.Axis("N"), geon.Axis("C", 4)], name="x")
    save(tmp_path / "sort.onnx", {"sorted": geon.sort(x, "N")}, [x])
    found = load(tmp_path / "sort.onnx").computation(NUMPY)(ROWS)["sorted"]
    np.testing.assert_array_equal(found, np.sort(ROWS, 0))


def test_a_start_before_the_front_is_the_front():
    """The standard clamps it to the first element; Python has an empty slice."""
    bounds = [np.array([n]) for n in (-100, -200, 0, -1)]
    np.testing.assert_array_equal(computed("Slice", ROWS, *bounds, domain="")[0], ROWS[:1])


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel"])
def test_the_nearest_elements_of_an_open_length(coordinates, nearest):
    """By an integer scale, each element is repeated, wherever its middle is rounded to."""
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
    for scale in (2, 3):
        node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest", **attributes)
        ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", "L"]) for n in "xy"]
        stored = onnx.numpy_helper.from_array(np.array([1, scale], np.float32), "scales")
        graph = helper.make_graph([node], "graph", ports[:1], ports[1:], [stored])
        graph.output[0].type.tensor_type.shape.dim[1].dim_param = "long"
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
        f = load(model).computation(NUMPY)
        for length in (1, 2, 5):
            x = ROWS.reshape(2, 10)[:, :length]
            expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
            np.testing.assert_array_equal(f(x)["y"], expected)


def test_draws_have_the_parameters_and_dtypes_of_their_nodes():
    (x,) = computed("RandomUniform", domain="", shape=[500], low=2.0, high=3.0, dtype=11)
    assert x.dtype == np.float64 and 2 <= x.min() < 2.1 and 2.9 < x.max() < 3
    (x,) = computed("RandomNormal", domain="", shape=[25, 20], mean=4.0, scale=0.1, seed=1.0)
    (same,) = computed("RandomNormal", domain="", shape=[500], mean=4.0, scale=0.1, seed=1.0)
    assert x.dtype == np.float32 and abs(x.mean() - 4) < 0.02 and 0.09 < x.std() < 0.11
    np.testing.assert_array_equal(x.reshape(-1), same)
    for operator in ("RandomUniformLike", "RandomNormalLike"):
        (x,) = computed(operator, IMAGES, domain="")
        (halves,) = computed(operator, IMAGES, domain="", dtype=10)
        assert x.shape == IMAGES.shape and x.dtype == np.float32 and halves.dtype == np.float16
        np.testing.assert_array_equal(x.astype(np.float16), halves)


@pytest.mark.parametrize(
    ("operator", "version", "attributes", "shape"),
    [
        ("Cast", 5, {"to": "INT32"}, (5, 4)),
        ("Clip", 6, {"min": -0.5, "max": 0.5}, (5, 4)),
        ("Pad", 2, {"pads": [1, 0, 0, 2], "value": 3.5}, (6, 6)),
        ("ReduceSum", 11, {"axes": [1], "keepdims": 0}, (5,)),
        ("Reshape", 1, {"shape": [2, -1]}, (2, 10)),
        ("Slice", 9, {"axes": [1], "starts": [1], "ends": [3]}, (5, 2)),
        ("TopK", 9, {"k": 2}, (5, 2)),
        ("Unsqueeze", 11, {"axes": [0]}, (1, 5, 4)),
    ],
)
def test_attributes_of_old_versions_are_inputs(operator, version, attributes, shape):
    model = model_of(operator, [ROWS], 2 if operator == "TopK" else 1, "", **attributes)
    model.opset_import[0].version = version
    assert backend.prepare(model, transformer=NUMPY).run([ROWS])[0].shape == shape
