"""Translate functions on block sizes from Python to C.

The functions of ``sizes/product_cut.py`` plan scratch memory in Python and run in the driver of
products in C. They have integers, floats, and dataclasses of integers, which are structs in C:
constant ones if they are frozen.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeGuard

from ...sizes.product_blocks import Shape
from ..names.c_files import defines

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.And: "&&",
    ast.Or: "||",
    ast.Not: "!",
    ast.USub: "-",
}
CASTS = {"float": "double", "int": "int64_t"}
MACROS = {"min": "LEAST", "max": "GREATEST"}


def size_functions(
    structs: Sequence[type], functions: Sequence[Callable[..., object]], of: Shape
) -> str:
    """Return dataclasses and functions in C, for the sizes of ``of``, each one's first argument.

    Constants are macros. Raise ``ValueError`` for what there is no C for here.
    """
    constants: dict[str, int] = {}
    texts = [_Translator(each, of, constants).text() for each in functions]
    return "\n".join([defines(constants), *map(_struct_text, structs), *texts])


def _struct_text(struct: type) -> str:
    members = "".join(f"    int64_t {field.name};\n" for field in fields(struct))
    return f"struct {_c_name(struct)} {{\n{members}}};\n"


def _c_name(made: Callable[..., object]) -> str:
    """Return the C name of a function or a dataclass: ``SizeProblem`` is ``geon_size_problem``."""
    words = "".join(
        f"_{letter.lower()}" if letter.isupper() else letter for letter in made.__name__
    )
    return f"geon_{words.lstrip('_')}"


class _TypedText(NamedTuple):
    """An expression in C and its type: ``int64_t``, ``double`` or a struct."""

    text: str
    type: str = "int64_t"


class _Translator:
    """Translates one function, and adds the constants that it uses to ``constants``.

    ``types`` are those of its variables. Structs are passed by pointers.
    """

    def __init__(
        self, function: Callable[..., object], of: Shape, constants: dict[str, int]
    ) -> None:
        self.of, self.function, self.constants = of, function, constants
        self.scope: Mapping[str, Any] = vars(inspect.getmodule(function))
        signature = inspect.signature(function, eval_str=True)
        self.result = _type(signature.return_annotation)
        named = list(signature.parameters.values())[1:]
        self.parameters = {each.name: _type(each.annotation) for each in named}
        self.passed = {each.name: _passed(each.annotation) for each in named}
        self.types = dict(self.parameters)

    def text(self) -> str:
        """Return the definition."""
        (definition,) = ast.parse(inspect.getsource(self.function)).body
        assert isinstance(definition, ast.FunctionDef)
        declared = ", ".join([f"{passed}{name}" for name, passed in self.passed.items()])
        statements = definition.body[1:]  # the first one is the docstring
        body = "".join(self.block(statements, 1))
        inline = "GEON_INLINE" if len(statements) == 1 else "static"
        name = _c_name(self.function)
        return f"{inline} QUICK_INSIDE {self.result} {name}({declared})\n{{\n{body}}}\n"

    def block(self, statements: Sequence[ast.stmt], depth: int) -> Iterator[str]:
        """Yield the lines of statements."""
        indent = "    " * depth
        for node in statements:
            match node:
                case ast.Assign([target], value):
                    yield f"{indent}{self.target(target, self.value(value))};\n"
                case ast.AugAssign(target, op, value):
                    changed = f"{self.value(target).text} {OPERATORS[type(op)]}="
                    yield f"{indent}{changed} {self.value(value).text};\n"
                case ast.If(test, body, orelse):
                    yield f"{indent}if ({self.value(test).text}) {{\n"
                    yield from self.block(body, depth + 1)
                    if orelse:
                        yield f"{indent}}} else {{\n"
                        yield from self.block(orelse, depth + 1)
                    yield f"{indent}}}\n"
                case ast.While(test, body):
                    yield f"{indent}while ({self.value(test).text}) {{\n"
                    yield from self.block(body, depth + 1)
                    yield f"{indent}}}\n"
                case ast.Break():
                    yield f"{indent}break;\n"
                case ast.Expr(ast.Call() as call):
                    yield f"{indent}{self.value(call).text};\n"
                case ast.Return(ast.expr() as value):
                    yield f"{indent}return {self.value(value).text};\n"
                case _:
                    raise self.unknown(node)

    def target(self, node: ast.expr, value: _TypedText) -> str:
        """Return an assignment, which declares a variable that is new."""
        if isinstance(node, ast.Name) and node.id not in self.types:
            self.types[node.id] = value.type
            return f"{value.type} {node.id} = {value.text}"
        return f"{self.value(node).text} = {value.text}"

    def value(self, node: ast.expr) -> _TypedText:
        """Return an expression in C."""
        match node:
            case ast.Constant(bool() | int() as number):
                return _TypedText(str(int(number)))
            case ast.Name(name) if name in self.types:
                pointer = name in self.parameters and _is_struct(self.types[name])
                return _TypedText(f"*{name}" if pointer else name, self.types[name])
            case ast.Name(name):
                return self.constant(name, self.scope[name], node)
            case ast.Attribute(ast.Name("of"), name):
                return self.constant(f"SHAPE_{name.upper()}", getattr(self.of, name), node)
            case ast.Attribute(ast.Name(name), member):
                return _TypedText(f"{name}{'->' if name in self.parameters else '.'}{member}")
            case ast.BinOp(left, ast.Div(), right):
                parts = [f"(double){self.value(each).text}" for each in (left, right)]
                return _TypedText(f"({' / '.join(parts)})", "double")
            case ast.BinOp(left, op, right):
                return self.joined(OPERATORS[type(op)], [left, right])
            case ast.BoolOp(op, values):
                return _TypedText(self.joined(OPERATORS[type(op)], values).text)
            case ast.UnaryOp(op, value):
                return _TypedText(f"({OPERATORS[type(op)]}{self.value(value).text})")
            case ast.Compare(left, ops, others):
                sides = [self.value(each).text for each in (left, *others)]
                steps = zip(sides, ops, sides[1:], strict=False)
                each = [f"{low} {OPERATORS[type(op)]} {high}" for low, op, high in steps]
                return _TypedText(f"({' && '.join(each)})")
            case ast.IfExp(test, body, orelse):
                chosen, other = self.value(body), self.value(orelse)
                text = f"({self.value(test).text} ? {chosen.text} : {other.text})"
                return _TypedText(text, _wider(chosen, other))
            case ast.Call(ast.Name(name), arguments):
                return self.call(name, arguments, node)
        raise self.unknown(node)

    def joined(self, operator: str, nodes: Sequence[ast.expr]) -> _TypedText:
        """Return operands with an operator between them."""
        values = [self.value(node) for node in nodes]
        return _TypedText(f"({f' {operator} '.join([v.text for v in values])})", _wider(*values))

    def call(self, name: str, arguments: Sequence[ast.expr], node: ast.AST) -> _TypedText:
        """Return a call of a function, a conversion, a lookup in a table, or an empty struct."""
        called = self.scope.get(name)
        if _is_data(called) and not arguments:
            return _TypedText(f"(struct {_c_name(called)}){{0}}", f"struct {_c_name(called)}")
        if name == "blocks_for":
            rows, table = self.value(arguments[0]).text, self.scope[ast.unparse(arguments[1])]
            *first, last = table.items()
            steps = "".join(f"{rows} <= {most} ? {count} : " for most, count in first)
            return _TypedText(f"({steps}{last[1]})")
        if name in CASTS:
            return _TypedText(f"({CASTS[name]})({self.value(arguments[0]).text})", CASTS[name])
        if name in MACROS:
            values = [self.value(each) for each in arguments]
            return _TypedText(
                f"{MACROS[name]}({', '.join([v.text for v in values])})", _wider(*values)
            )
        if not inspect.isfunction(called):
            raise self.unknown(node)
        result = _type(inspect.signature(called, eval_str=True).return_annotation)
        given = ", ".join([_pointer(self.value(each)) for each in arguments[1:]])
        return _TypedText(f"{_c_name(called)}({given})", result)

    def constant(self, name: str, value: object, node: ast.AST) -> _TypedText:
        """Return the macro of a constant."""
        if not isinstance(value, int):
            raise self.unknown(node)
        self.constants[name] = value
        return _TypedText(name)

    def unknown(self, node: ast.AST) -> ValueError:
        """Return the error for what has no translation."""
        text, name = ast.unparse(node), self.function.__qualname__
        return ValueError(f"there is no C for {text!r} in {name}; say it with integers, floats, "
                          "structs, if, while and calls of size functions")  # fmt: skip


def _is_data(annotation: Any) -> TypeGuard[type]:
    """Return True for a dataclass, not for one of its values."""
    return isinstance(annotation, type) and is_dataclass(annotation)


def _type(annotation: Any) -> str:
    if annotation is None:
        return "void"
    if _is_data(annotation):
        return f"struct {_c_name(annotation)}"
    return "double" if annotation is float else "int64_t"


def _is_struct(type: str) -> bool:
    return type.startswith("struct ")


def _passed(annotation: Any) -> str:
    """Return the declaration of a parameter, without its name."""
    if not _is_data(annotation):
        return f"{_type(annotation)} "
    frozen = annotation.__setattr__ is not object.__setattr__  # objects refuse assignments
    return f"{'const ' * frozen}{_type(annotation)} *"


def _pointer(value: _TypedText) -> str:
    """Return an argument: the address of a struct."""
    if not _is_struct(value.type):
        return value.text
    return value.text.removeprefix("*") if value.text.startswith("*") else f"&{value.text}"


def _wider(*values: _TypedText) -> str:
    """Return the type of what is computed from all values."""
    types = {value.type for value in values}
    return "double" if "double" in types else types.pop()
