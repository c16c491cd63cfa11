"""Promises of the README and of the design, and the tests that would fail if they were false.

``readme.toml`` and ``design.toml`` are tables: a section is a chapter, a key is a promise in words
of the table's own, and its value is

    ["tests/test_limits.py::test_a_deep_graph", ...]   the tests that would fail if it were false
    "planned"         says that something is not there yet
    "measurement"     figures of one machine
    "open: ..."       a promise that no test holds yet, or known to be false: what is missing

``test_promises.py`` checks that the named tests exist.
"""
