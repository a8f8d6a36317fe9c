"""Parsing the text form of graphs (:mod:`rewright.ir.text`); every error is one sentence with the line number."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rewright.ir.building import build_operator, parse_size, parse_type
from rewright.ir.errors import RewrightError
from rewright.ir.graph import NO_SPAN, Graph, Node, describe_failure
from rewright.ir.operator import Operator
from rewright.ir.text import default_inputs
from rewright.ir.types import DType, SourceSpan, TensorType

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<tensor>tensor<[^<>\s]*>) | (?P<size><[^<>]*>) | (?P<string>"(?:[^"\\]|\\.)*") | (?P<node>%\d+)
    | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?)) | (?P<word>[A-Za-z_][A-Za-z_0-9.]*)
    | (?P<mark>[=:,(){}\[\]]) | (?P<comment>//.*)
    )""",
    re.VERBOSE,
)
_WORDS: dict[str, object] = {"true": True, "false": False, "none": None, **{dtype.value: dtype for dtype in DType}}


def parse_graph(text: str, registry: Mapping[str, type[Operator]]) -> Graph:
    """The graph that a text describes; operators are looked up in the registry and every node is type-checked.

    Raises RewrightError with the line number and what was expected there.
    """
    reader = _GraphReader(registry)
    number = 0
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            tokens = _tokens(line)
            if tokens:
                reader.line(_Tokens(tokens))
        except RewrightError as error:
            raise RewrightError(f"line {number}: {error}") from None
    if not reader.closed:
        raise RewrightError(f"line {number + 1}: the text ends before the closing }}; is the file complete?")
    return reader.graph()


def _tokens(line: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position, end = 0, len(line.rstrip())
    while position < end:
        match = _TOKEN.match(line, position)
        if match is None or match.lastgroup is None:
            raise RewrightError(f"cannot read {line[position:end].strip()[:40]!r}; is the file complete?")
        if match.lastgroup != "comment":
            found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


class _Tokens:
    """The tokens of one line, read from left to right."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position][1] if self.position < len(self.tokens) else ""

    def take(self, kind: str, expected: str) -> str:
        if self.position < len(self.tokens) and self.tokens[self.position][0] == kind:
            self.position += 1
            return self.tokens[self.position - 1][1]
        raise RewrightError(f"expected {expected} and found {self.peek() or 'the end of the line'}")

    def accept(self, text: str) -> bool:
        if self.peek() == text:
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise RewrightError(f"expected {text!r} and found {self.peek() or 'the end of the line'}")

    def end(self) -> None:
        if self.position < len(self.tokens):
            raise RewrightError(f"expected the end of the line and found {self.peek()!r}")

    def string(self, expected: str) -> str:
        text = self.take("string", expected)
        try:
            return json.loads(text)
        except ValueError:
            raise RewrightError(f"{text} is no string; escape it as in JSON") from None

    def node(self) -> int:
        return int(self.take("node", "a node such as %3")[1:])

    def integer(self, expected: str) -> int:
        text = self.take("number", expected)
        if not text.lstrip("-").isdigit():
            raise RewrightError(f"expected {expected} and found {text}")
        return int(text)

    def type(self) -> TensorType:
        return parse_type(self.take("tensor", "a type such as tensor<2x3xf32>")[7:-1])

    def value(self) -> object:
        if self.accept("["):
            return self.list()
        kind, text = self.tokens[self.position] if self.position < len(self.tokens) else ("", "")
        self.position += 1
        if kind == "number":
            return int(text) if text.lstrip("-").isdigit() else float(text)
        if kind == "size":
            return parse_size(text[1:-1])
        if kind == "word" and text in _WORDS:
            return _WORDS[text]
        self.position -= 1
        if kind == "tensor":
            return self.type()
        return self.string("a value")

    def list(self) -> tuple[object, ...]:
        items: list[object] = []
        while not self.accept("]"):
            if items:
                self.expect(",")
            items.append(self.value())
        return tuple(items)


class _GraphReader:
    """What has been read so far."""

    def __init__(self, registry: Mapping[str, type[Operator]]) -> None:
        self.registry = registry
        self.name: str | None = None
        self.closed = False
        self.metadata: dict[str, str] = {}
        self.nodes: list[Node] = []
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}

    def line(self, tokens: _Tokens) -> None:
        if self.closed:
            raise RewrightError("there is text after the closing }; a file holds one graph")
        if self.name is None:
            tokens.expect("graph")
            self.name = tokens.string('a name such as "model"')
            tokens.expect("{")
        elif tokens.accept("}"):
            self.closed = True
        elif tokens.accept("metadata"):
            key = tokens.string("a key in quotes")
            tokens.expect("=")
            self.metadata[key] = tokens.string("a text in quotes")
        elif tokens.accept("input"):
            self.named(tokens, self.inputs, "input")
        elif tokens.accept("output"):
            self.named(tokens, self.outputs, "output")
        else:
            self.node(tokens)
        tokens.end()

    def named(self, tokens: _Tokens, table: dict[str, int], what: str) -> None:
        name = tokens.string(f"the name of an {what} in quotes")
        tokens.expect("=")
        position = tokens.node()
        if name in table:
            raise RewrightError(f"{what} {name!r} is declared twice")
        if position >= len(self.nodes):
            raise RewrightError(f"{what} {name!r} names %{position}, which is not defined above")
        table[name] = position

    def node(self, tokens: _Tokens) -> None:
        position = tokens.node()
        if position != len(self.nodes):
            raise RewrightError(f"nodes are numbered in order: expected %{len(self.nodes)} and found %{position}")
        tokens.expect("=")
        name = tokens.take("word", "the name of an operator")
        operands = self.operands(tokens)
        values = self.attributes(tokens)
        tokens.expect(":")
        declared = tokens.type()
        span = read_span(tokens) if tokens.peek() == "loc" else NO_SPAN
        if "tensor" not in values and _takes_tensor(self.registry, name):
            values["tensor"] = declared
        op = build_operator(self.registry, name, values)
        types = [self.nodes[operand].type for operand in operands]
        inferred = self.infer(op, types, span)
        if inferred != declared:
            raise RewrightError(f"%{position} is declared tensor<{declared}> and {name} gives tensor<{inferred}>")
        self.nodes.append(Node(op, operands, inferred, span))

    def infer(self, op: Operator, types: list[TensorType], span: SourceSpan) -> TensorType:
        try:
            return op.infer(types)
        except RewrightError as error:
            raise RewrightError(describe_failure(len(self.nodes), op, types, span, str(error))) from None

    def operands(self, tokens: _Tokens) -> tuple[int, ...]:
        found: list[int] = []
        if tokens.accept("("):
            while not tokens.accept(")"):
                if found:
                    tokens.expect(",")
                found.append(tokens.node())
                if found[-1] >= len(self.nodes):
                    raise RewrightError(f"operand %{found[-1]} is not defined above")
        return tuple(found)

    def attributes(self, tokens: _Tokens) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if tokens.accept("{"):
            while not tokens.accept("}"):
                if values:
                    tokens.expect(",")
                name = tokens.take("word", "the name of an attribute")
                tokens.expect("=")
                values[name] = tokens.value()
        return values

    def graph(self) -> Graph:
        nodes = tuple(self.nodes)
        return Graph(nodes, self.inputs or default_inputs(nodes), self.outputs, self.name or "", self.metadata)


def read_span(tokens: _Tokens) -> SourceSpan:
    """A source location as :func:`rewright.ir.text.print_span` writes it."""
    fields: dict[str, Any] = {}
    names = {"function": "function", "module": "module_path", "scope": "scope"}
    tokens.expect("loc")
    tokens.expect("(")
    if tokens.peek().startswith('"'):
        fields["file"] = tokens.string("a file name")
        tokens.expect(":")
        fields["line"] = tokens.integer("a line number")
    while not tokens.accept(")"):
        if tokens.accept("backward"):
            fields["backward"] = True
            continue
        word = tokens.take("word", "function, module, scope, backward or )")
        if word not in names:
            raise RewrightError(f"expected function, module, scope or backward and found {word}")
        fields[names[word]] = tokens.string(f"the {word} in quotes")
    return SourceSpan(**fields)


def _takes_tensor(registry: Mapping[str, type[Operator]], name: str) -> bool:
    operator = registry.get(name)
    return operator is not None and "tensor" in getattr(operator, "__dataclass_fields__", {})
