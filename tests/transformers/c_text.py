"""Reading C text, which geon itself never does."""

import re

from geon.transformers.printing.scalars.helpers import definitions, helpers

NAME = re.compile(r"\bgeon_\w+")


def mentioned(text):
    """The helper functions that a text mentions, in order."""
    return [name for name in dict.fromkeys(NAME.findall(text)) if name in helpers()]


def with_helpers(text):
    """The text behind the definitions of all helpers that it needs."""
    return definitions(mentioned(text)) + text
