"""A parser of TTIR as Triton prints it, for operations with and without a syntax of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rewright.frontends.triton.text.scopes import with_unique_names
from rewright.frontends.triton.text.syntax import Block, Function, Kind, Location, Module, Operation
from rewright.frontends.triton.text.tokens import END_OF_LINE, Token, tokens_of
from rewright.ir.errors import UnsupportedOperator

_OPEN, _CLOSE = "({<[", ")}>]"


def parse_module(text: str) -> Module:
    """The functions of a module; raises UnsupportedOperator for what is no TTIR."""
    found = _Parser(list(tokens_of(text))).module()
    return Module({name: with_unique_names(function) for name, function in found.functions.items()})


@dataclass
class _Header:
    """What is read of an operation before its regions."""

    operands: list[str] = field(default_factory=list[str])
    words: list[str] = field(default_factory=list[str])
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    types: list[Kind] = field(default_factory=list[Kind])
    given: list[Kind] = field(default_factory=list[Kind])


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = [*tokens, Token("end", END_OF_LINE)]
        self._place = 0
        self._locations: dict[str, list[Token]] = {}

    def module(self) -> Module:
        """``module { functions }``, with locations by name before and behind it."""
        self._find_locations()
        functions: dict[str, Function] = {}
        while self._place < len(self._tokens):
            if self._text == "tt.func":
                function = self._function()
                functions[function.name] = function
            else:
                self._place += 1
        return Module(functions)

    def _find_locations(self) -> None:
        for place, token in enumerate(self._tokens[:-3]):
            is_definition = token.text.startswith("#loc") and self._tokens[place + 1].text == "="
            if is_definition and self._tokens[place + 2].text == "loc":
                end = self._matching(place + 3)
                self._locations[token.text] = self._tokens[place + 4 : end]

    @property
    def _text(self) -> str:
        return self._tokens[self._place].text

    def _next(self) -> str:
        self._place += 1
        return self._tokens[self._place - 1].text

    def _expect(self, text: str) -> None:
        if self._text != text:
            raise UnsupportedOperator(f"the TTIR has {self._text!r} where {text!r} is expected")
        self._place += 1

    def _skip(self, text: str) -> None:
        self._place += self._text == text

    def _skip_lines(self) -> None:
        while self._place < len(self._tokens) and self._text == END_OF_LINE:
            self._place += 1

    def _matching(self, place: int) -> int:
        """The place of the bracket that closes the one at a place."""
        depth = 0
        for end in range(place, len(self._tokens)):
            text = self._tokens[end].text
            if len(text) == 1 and text in _OPEN:
                depth += 1
            elif len(text) == 1 and text in _CLOSE:
                depth -= 1
                if depth == 0:
                    return end
        raise UnsupportedOperator("the TTIR ends inside of brackets")

    def _function(self) -> Function:
        self._expect("tt.func")
        is_public = self._text == "public"
        while not self._text.startswith("@"):
            self._place += 1
        name = self._next().lstrip("@")
        arguments = self._arguments()
        given = self._given()
        if self._text == "attributes":
            self._place = self._matching(self._place + 1) + 1
        block = self._region(arguments)
        return Function(name, is_public, block, tuple(given))

    def _arguments(self) -> tuple[tuple[str, Kind], ...]:
        """``(%name: type {attributes} loc(...), ...)``."""
        end = self._matching(self._place)
        found: list[tuple[str, Kind]] = []
        self._place += 1
        while self._place < end:
            name = self._next()
            self._expect(":")
            found.append((name, self._kind()))
            while self._place < end and self._text != ",":
                bracket = len(self._text) == 1 and self._text in _OPEN
                self._place = self._matching(self._place) + 1 if bracket else self._place + 1
            self._place += 1
        self._place = end + 1
        return tuple(found)

    def _given(self) -> list[Kind]:
        if self._text not in ("->", "to"):
            return []
        self._place += 1
        return self._kinds()

    def _kinds(self) -> list[Kind]:
        """``type``, ``type, type`` or ``(type, type)``."""
        if self._text == "(":
            end = self._matching(self._place)
            self._place += 1
            found = self._list_of_kinds() if self._place < end else []
            self._place = end + 1
            return found
        return self._list_of_kinds()

    def _list_of_kinds(self) -> list[Kind]:
        found = [self._kind()]
        while self._text in (",", "*"):
            self._place += 1
            found.append(self._kind())
        return found

    def _kind(self) -> Kind:
        word = self._next()
        if word == "!tt.ptr":
            end = self._matching(self._place)
            self._place += 1
            inner = self._kind()
            self._place = end + 1
            return Kind(inner.element, inner.shape, is_pointer=True)
        if self._text != "<":
            return Kind(word)
        start, end = self._place, self._matching(self._place)
        if word != "tensor":
            self._place = end + 1
            return Kind(word + "".join(t.text for t in self._tokens[start : end + 1]))
        self._place += 1
        shape: list[int] = []
        while self._tokens[self._place].kind == "dims":
            shape.append(int(self._next()[:-1]))
        element = self._kind()
        self._place = end + 1
        return Kind(element.element, tuple(shape), element.is_pointer)

    def _region(self, arguments: tuple[tuple[str, Kind], ...] = ()) -> Block:
        """``{ operations }``, behind ``^bb0(arguments):`` where there are any."""
        self._expect("{")
        self._skip_lines()
        if self._text.startswith("^"):
            self._place += 1
            arguments = self._arguments()
            self._expect(":")
        first = Block(arguments, self._operations())
        others: list[tuple[str, Block]] = []
        while self._text.startswith("^"):
            name = self._next()
            own = self._arguments() if self._text == "(" else ()
            self._expect(":")
            others.append((name, Block(own, self._operations())))
        self._expect("}")
        return replace(first, others=tuple(others))

    def _operations(self) -> tuple[Operation, ...]:
        """Operations up to the next block, or the end of the region."""
        found: list[Operation] = []
        self._skip_lines()
        while self._text != "}" and not self._text.startswith("^"):
            found.append(self._operation())
            self._skip_lines()
        return tuple(found)

    def _operation(self) -> Operation:
        results = self._results()
        name = self._next().strip('"')
        header, regions = _Header(), list[Block]()
        arguments = self._loop_head(header) if name in ("scf.for", "scf.while") else ()
        while self._text not in (END_OF_LINE, "loc"):
            if self._is_region():
                regions.append(self._region(arguments))
                self._between_regions()
            elif self._text == "(" and self._tokens[self._place + 1].text == "{":
                self._place += 1
                regions.append(self._region())
                while self._next() == ",":  # and else the bracket is closed
                    regions.append(self._region())
            else:
                self._part(header)
        location = self._location()
        return Operation(
            name,
            results,
            tuple(header.operands),
            tuple(header.words),
            header.attributes,
            tuple(header.types),
            tuple(header.given),
            tuple(regions),
            location,
        )

    def _results(self) -> tuple[str, ...]:
        """``%a, %b:2 =``; several results of one name are ``%b#0`` and ``%b#1``."""
        found: list[str] = []
        if not self._text.startswith("%"):
            return ()
        while self._text != "=":
            name = self._next()
            if self._text == ":":
                self._place += 1
                found += [f"{name}#{number}" for number in range(int(self._next()))]
            else:
                found.append(name)
            self._skip(",")
        self._place += 1
        return tuple(found)

    def _is_region(self) -> bool:
        """Whether a brace opens a region, whose operations stand on lines of their own, and no attributes."""
        return self._text == "{" and self._tokens[self._place + 1].text == END_OF_LINE

    def _between_regions(self) -> None:
        if self._text in ("else", "do"):
            self._place += 1

    def _loop_head(self, header: _Header) -> tuple[tuple[str, Kind], ...]:
        """``%i = %low to %high step %step iter_args(%a = %init, ...) -> (types) : type``."""
        names: list[str] = []
        if self._text.startswith("%"):
            names.append(self._next())
            for mark in ("=", "to", "step"):
                self._expect(mark)
                header.operands.append(self._next())
        if self._text == "iter_args":
            self._place += 1
        if self._text == "(":
            end = self._matching(self._place)
            self._place += 1
            while self._place < end:
                names.append(self._next())
                self._expect("=")
                header.operands.append(self._next())
                self._skip(",")
            self._place = end + 1
        if self._text == ":":  # of ``scf.while``: types of what is given
            self._place += 1
            header.types += self._kinds()
        header.given += self._given()
        if self._text == ":":
            self._place += 1
            header.types += self._kinds()
        kinds = [Kind("i32") for _ in range(len(names) - len(header.given))] + header.given
        return tuple(zip(names, kinds, strict=True)) if len(kinds) == len(names) else ()

    def _part(self, header: _Header) -> None:
        """The next operand, word, list of attributes or list of types."""
        token = self._tokens[self._place]
        if token.kind == "name" and token.text.startswith("%"):
            header.operands.append(self._next())
        elif token.text.startswith("^"):
            header.words.append(self._next())
        elif token.text == "{" or (token.text == "<" and self._tokens[self._place + 1].text == "{"):
            end = self._matching(self._place)
            header.attributes.update(_attributes(self._tokens[self._place + 1 : end]))
            self._place = end + 1
        elif token.text == ":":
            self._place += 1
            header.types += self._kinds()
        elif token.text in ("->", "to"):
            header.given += self._given()
        elif token.kind == "word" and self._tokens[self._place + 1].text == "=":
            self._place += 2
            header.attributes[token.text] = self._next()
        elif token.kind == "word" and self._tokens[self._place + 1].text == "<":
            end = self._matching(self._place + 1)
            header.words.append("".join(t.text for t in self._tokens[self._place : end + 1]))
            self._place = end + 1
        elif token.kind in ("word", "number", "string") or token.text.startswith("@"):
            header.words.append(self._next().strip('"'))
        else:
            self._place += 1

    def _location(self) -> Location:
        if self._text != "loc":
            return Location()
        end = self._matching(self._place + 1)
        found = self._read_location(self._tokens[self._place + 2 : end], 8)
        self._place = end + 1
        return found

    def _read_location(self, tokens: Sequence[Token], depth: int) -> Location:
        """``"file":line:column``, ``"name"(place)``, ``callsite(inner at outer)``, or a name of one of these."""
        texts = [t.text for t in tokens]
        if not texts or depth == 0 or texts[0] == "unknown":
            return Location()
        if texts[0].startswith("#"):
            return self._read_location(self._locations.get(texts[0], ()), depth - 1)
        if texts[0] == "callsite":
            at = texts.index("at")
            outer = self._read_location(tokens[at + 1 : -1], depth - 1)
            return outer if outer.line else self._read_location(tokens[2:at], depth - 1)
        text = texts[0].strip('"')
        if len(texts) > 2 and texts[1] == ":":
            return Location(text, int(texts[2]))
        inner = self._read_location(tokens[2:-1], depth - 1)
        return Location(inner.file, inner.line, text)


def _attributes(tokens: Sequence[Token]) -> dict[str, str]:
    """``name = value, name = value : type, name``, values as text."""
    found: dict[str, str] = {}
    for part in _parts([t.text for t in tokens if t.text != END_OF_LINE]):
        name, *value = part
        if name in "{<" and value:  # of ``<{...}>``
            found.update(_attributes([Token("word", t) for t in value[:-1]]))
        elif value and value[0] == "=":
            found[name] = "".join(value[1 : _end_of_value(value)])
        else:
            found[name] = "true"
    return found


def _end_of_value(texts: Sequence[str]) -> int:
    """Where the type of a value begins, outside of brackets."""
    depth = 0
    for place, text in enumerate(texts):
        depth += (text in _OPEN) - (text in _CLOSE) if len(text) == 1 else 0
        if text == ":" and depth == 0:
            return place
    return len(texts)


def _parts(texts: Sequence[str]) -> list[list[str]]:
    """A list of texts parted at commas that are outside of brackets."""
    found: list[list[str]] = []
    part, depth = list[str](), 0
    for text in texts:
        depth += (text in _OPEN) - (text in _CLOSE) if len(text) == 1 else 0
        if text == "," and depth == 0:
            found.append(part)
            part = []
        else:
            part.append(text)
    return [p for p in [*found, part] if p]
