"""Promises, and the tests that would fail if they were false.

Each ``.toml`` here is a table. ``pages.toml`` has README.md and the pages of ``docs/``, the files
named after parts of geon have their docstrings, public or not; ``design.toml`` has what the design
promises, in words of our own. A section is a page, a qualified name, or a chapter; a key is a
sentence, word for word where it stands in the project's own text; its value is

    ["tests/test_limits.py::test_a_deep_graph", ...]   the tests that would fail if it were false
    "definition"      says what something is or does; whatever uses it would show that it is wrong
    "explanation"     says why
    "measurement"     figures of one machine, or the history of a decision
    "planned"         says that something is not there yet
    "project"         about the project and its commands
    "open: ..."       a promise that no test holds yet, or known to be false: what is missing

``test_promises.py`` holds the tables to the text: a sentence with words that promise (see
``sentences.py``) must be in them, a row whose words have changed is named, and so is a test that is
not there. ``python -m tests.promises`` prints what to put in and what to take out.
"""
