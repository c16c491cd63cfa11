"""Every sentence that promises something is in the table, with tests that are there."""

import pytest

from . import table
from .sentences import Sentence, all_sentences, of_page, promising, sentences

QUOTED, DESIGN = table.quoted(), table.design()
MEND = "python -m tests.promises prints what to do"


def told(found):
    """Sentences one below the other."""
    return "".join(f"\n  {sentence.place}: {sentence.text}" for sentence in found)


def test_every_sentence_that_promises_is_in_a_table():
    found = table.missing(QUOTED, all_sentences())
    assert not found, f"no row for these ({MEND}):{told(found)}"


def test_every_row_quotes_words_that_are_there():
    found = table.changed(QUOTED, all_sentences())
    assert not found, f"these words stand there no more ({MEND}):{told(found)}"


@pytest.mark.parametrize("rows", [QUOTED, DESIGN], ids=["text", "design"])
def test_every_row_names_tests_that_are_there_or_says_why_not(rows):
    wrong = [f"{s.place}: {s.text} {table.wrong_value(v)}" for s, v in rows.items()
             if table.wrong_value(v)]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def test_no_row_is_there_twice():
    for path in sorted(table.FOLDER.glob("*.toml")):
        listed = [sentence for sentence, _ in table.rows(path)]
        others = [s for other in table.FOLDER.glob("*.toml") if other != path
                  for s, _ in table.rows(other)]  # fmt: skip
        assert not set(listed) & set(others), path.name


# That it notices ----------------------------------------------------------------------------------

PROSE = """
An op is never changed. It has a name, which e.g. `x` is.

- Results are equal for
  any number of threads.
- `f` (see above). The rest is the user's.

| what | promise |
|---|---|
| `a` | at most 3 |
"""


def test_prose_is_cut_into_sentences():
    assert list(sentences(PROSE)) == [
        "An op is never changed.",
        "It has a name, which e.g. `x` is.",
        "Results are equal for any number of threads.",
        "`f` (see above).",
        "The rest is the user's.",
        "what",
        "promise",
        "`a`",
        "at most 3",
    ]


def test_programs_and_headings_are_no_prose():
    texts = [sentence.text for sentence in of_page("docs/tour.md")]
    assert not any("import geon" in text or text.startswith("#") for text in texts)
    assert "It changes no variable." in texts


@pytest.mark.parametrize(
    ("place", "text", "does"),
    [
        ("geon.x", "It is never written.", True),
        ("geon.x", "Results are the same bits.", True),
        ("geon.x", "At most 2.5 ulp off.", True),
        ("geon.x", "Takes 30 ns.", True),
        ("geon.x", "The axes of a tensor.", False),
        ("geon.x", "It is not written.", False),
        ("docs/x.md", "It is not written.", True),
        ("docs/x.md", "It raises an error.", True),
        ("docs/x.md", "It has axes.", False),
    ],
)
def test_words_that_promise(place, text, does):
    assert promising(Sentence(place, text)) is does


def test_new_changed_and_unheld_promises_are_named():
    known = {Sentence("docs/x.md", "It is never written."): ["tests/test_docs.py::test_x"]}
    now = [Sentence("docs/x.md", "It is hardly ever written."), Sentence("docs/x.md", "No axes.")]
    assert table.missing(known, now) == [now[1]]
    assert table.changed(known, now) == list(known)
    for value in (["tests/test_docs.py::test_x"], ["tests/nowhere.py::test_x"], [], "perhaps",
                  "open: ", ["tests/test_docs.py::python"]):  # fmt: skip
        assert table.wrong_value(value)
    for value in (["tests/test_docs.py::test_the_build_has_no_warning"], "definition",
                  "open: what is missing and why it is"):  # fmt: skip
        assert table.wrong_value(value) is None


def test_what_is_missing_is_shown_as_it_would_stand():
    found = [Sentence("geon.a", "It's never so."), Sentence("geon.a", 'No "x".')]
    assert table.shown(found) == '\n["geon.a"]\n"It\'s never so." = \n\'No "x".\' = '
