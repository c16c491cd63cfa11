"""The table of operators: each row agrees with the schemas of the standard."""

import inspect
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import TensorProto, defs

from geon.frontends.onnx import ModelError
from geon.frontends.onnx.operators.images.convolution import slides_of
from geon.frontends.onnx.table import FAMILIES, UNREAD, OperatorRow
from geon.frontends.onnx.table import rows_of as rows_of_family
from geon.frontends.positional.values import Size, host
from geon.op_graph.values.dtypes import DType

PLACES = [(domain, family) for domain, families in FAMILIES.items() for family in families]
TABLE = {key: rows for _, family in PLACES for key, rows in rows_of_family(family).items()}
SCHEMAS = [s for s in defs.get_all_schemas_with_history() if (s.domain, s.name) in TABLE]


def package_of(function):
    return function.__module__.rpartition(".")[0]


def rows_of(schema):
    rows = TABLE[schema.domain, schema.name]
    return [row for row in rows if row.holds(schema.since_version)]


def test_each_version_of_an_operator_has_one_row():
    counts = Counter((s.name, s.since_version, len(rows_of(s))) for s in SCHEMAS)
    assert not [key for key in counts if key[2] != 1]
    known = {(s.domain, s.name) for s in SCHEMAS}
    assert not TABLE.keys() - known, "a row of an operator that the standard does not have"


def test_each_row_takes_all_attributes_of_its_schemas():
    """Rows of windows pass further attributes on to ``slides_of``."""
    lacking = []
    for schema in SCHEMAS:
        for row in rows_of(schema):
            parameters = [*inspect.signature(row.build).parameters.values()]
            is_open = any(p.kind == p.VAR_KEYWORD for p in parameters)
            if is_open and package_of(row.build) == package_of(slides_of):
                parameters += inspect.signature(slides_of).parameters.values()
                is_open = False
            names = {p.name for p in parameters if p.kind != p.POSITIONAL_ONLY}
            if not is_open:
                missing = schema.attributes.keys() - names - row.attributes.keys()
                lacking += [(schema.name, schema.since_version, n) for n in missing if row.reads(n)]
    assert not lacking


def test_each_operator_is_in_one_family_of_its_domain():
    """A search for an operator reads the families of its domain, and ends with the first."""
    places = [(domain, key) for domain, family in PLACES for key in rows_of_family(family)]
    assert max(Counter(key for _, key in places).values()) == 1
    assert all(key[0] == domain for domain, key in places)


def test_no_row_takes_an_attribute_that_is_left_out():
    attributes = {(s.name, name) for s in SCHEMAS for name in s.attributes}
    for key in UNREAD:
        operator, _, name = key.rpartition(".")
        assert any(name == each and operator in ("", owner) for owner, each in attributes), key
        taken = [r for rows in TABLE.values() for r in rows if operator in ("", r.name)]
        assert not [r.name for r in taken if name in r.parameters]


def test_inputs_and_attributes_are_read_as_the_signature_says():
    def build(
        x, k: "int" = 3, sizes: "Sequence[Size]" = (), *more: "int", to: "DType | None" = None
    ):
        return x, k, sizes, more, to

    example, x, one = OperatorRow("Example", build, attributes={"old": 2}), host(1.5), host([1])
    assert example.apply([x, None, host([2, 3]), one], {}) == (x, 3, [2, 3], (one,), None)
    assert example.apply([x, one], {"to": TensorProto.INT8}) == (x, 1, (), (), np.int8)
    assert example.apply([x], {"to": "double", "old": [4]}) == (x, 3, [4], (), np.float64)
    assert example.apply([x], {"to": 0}) == (x, 3, (), (), None)
    with pytest.raises(ModelError, match="the attribute 'to' has the element type 99"):
        example.apply([x], {"to": 99})
