"""The table of operators: each row agrees with the schemas of the standard."""

import inspect
from collections import Counter

from onnx import defs

from geon.frontends.onnx.operators.images.convolution import slides_of
from geon.frontends.onnx.table import FAMILIES, UNREAD
from geon.frontends.onnx.table import rows_of as rows_of_family

PLACES = [(domain, family) for domain, families in FAMILIES.items() for family in families]
TABLE = {key: rows for _, family in PLACES for key, rows in rows_of_family(family).items()}
SCHEMAS = [s for s in defs.get_all_schemas_with_history() if (s.domain, s.name) in TABLE]


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
            if is_open and row.build.__module__ == slides_of.__module__:
                parameters += inspect.signature(slides_of).parameters.values()
                is_open = False
            names = {p.name for p in parameters if p.kind != p.POSITIONAL_ONLY}
            if not is_open:
                missing = schema.attributes.keys() - names - row.attributes.keys() - UNREAD
                lacking += [(schema.name, schema.since_version, name) for name in missing]
    assert not lacking


def test_each_operator_is_in_one_family_of_its_domain():
    """A search for an operator reads the families of its domain, and ends with the first."""
    places = [(domain, key) for domain, family in PLACES for key in rows_of_family(family)]
    assert max(Counter(key for _, key in places).values()) == 1
    assert all(key[0] == domain for domain, key in places)
