"""Assembly of the C text of elementary functions: polynomials, and templates over a type.

The texts use names of the emitter's prelude: ``GEON_INLINE``, ``GEON_OUTLINED`` for rarely called
functions, ``GEON_FMA_F32``, ``GEON_FMA_F64`` and, where a product must be exact, the compiler's own
``__FMA__`` and ``__ARM_FEATURE_FMA``. All other ``geon_`` names are keys of the tables of
definitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["WORDS", "definitions_of", "of_type"]

_POLYNOMIAL = re.compile(r"(\w+)_(F32|F64)<(\w+)>")
_NAME = re.compile(r"GEON_(?:INLINE|OUTLINED) \w+ (geon_\w+)\(")
_WORD = re.compile(r"@(\w*)")

# Words of templates for each float type: its C type, that of its bits, the number of fraction bits,
# and the suffixes of names, of macros, and ("") of literals and functions of the C library.
WORDS = {
    "float32": {"real": "float", "s": "f32", "K": "F32", "uint": "uint32_t", "": "f",
                "MANTISSA": "23"},
    "float64": {"real": "double", "s": "f64", "K": "F64", "uint": "uint64_t", "": "",
                "MANTISSA": "52"},
}  # fmt: skip


def of_type(text: str, dtype: str, words: Mapping[str, str]) -> str:
    """Return a template's text for a float type, with a word of it in place of each ``@name``."""
    own = {**WORDS[dtype], **words}
    return _WORD.sub(lambda at: own[at[1]], text)


def horner(kind: str, variable: str, coefficients: Sequence[float]) -> str:
    """Return the C expression of c0 + c1 v + c2 v^2 + ..., as a chain of fused multiply-adds."""
    digits, suffix = (9, "f") if kind == "F32" else (17, "")
    constants = [f"{c:#.{digits}g}{suffix}" for c in coefficients]
    text = constants[-1]
    for constant in reversed(constants[:-1]):
        text = f"GEON_FMA_{kind}({text}, {variable},\n        {constant})"
    return text


def definitions_of(text: str, **tables: Sequence[float]) -> dict[str, str]:
    """Return the functions in ``text`` by name; ``TABLE_F32<v>`` expands to that polynomial in v.

    ``TABLE_F64<v>`` is the same in float64. Coefficients start with the constant one. Functions are
    separated by one empty line.
    """
    text = _POLYNOMIAL.sub(lambda at: horner(at[2], at[3], tables[at[1]]), text.strip())
    found = {}
    for function in text.split("\n\n"):
        named = _NAME.match(function)
        assert named is not None, function
        found[named[1]] = function + "\n"
    return found
