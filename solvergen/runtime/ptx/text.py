"""PTX text -> ``module.Module``.

Reads what NVRTC emits for kernels, and inline assembly within them. What it doesn't know it refuses:
functions and calls, tables of branches, textures, names that nobody declared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from solvergen.errors import PtxError
from solvergen.runtime.ptx import declarations
from solvergen.runtime.ptx.module import Guard, Instruction, Kernel, Module, Place, Symbol, Variable
from solvergen.runtime.ptx.scope import Scope, Unreadable
from solvergen.runtime.ptx.statements import NAME, Source, Statement, body_statements

_SPACES = ("global", "const", "shared", "local")
_TOP = re.compile(
    rf"""\s*(?:
      (?P<entry>(?:\.(?:visible|weak)\s+)? \.entry\s+(?P<kernel>{NAME})\s*
        (?:\((?P<parameters>[^()]*)\))? (?P<limits>(?:[^{{}}"]|"[^"\n]*")*) \{{)
    | (?P<variable>(?:\.(?P<linking>visible|extern|weak|common)\s+)?
        \.(?P<space>global|const|shared)\s+(?P<declared>[^;]*);)
    | (?P<section>\.section\s[^{{}}]*\{{[^{{}}]*\}})
    | (?P<file>\.file\s[^\n]*)
    | (?P<version>\.version\s+(?P<major>\d+)\.(?P<minor>\d+))
    | (?P<target>\.target\s+(?P<architecture>\w+)[^\n]*)
    | (?P<size>\.address_size\s+(?P<bits>\d+))
    | (?P<pragma>\.pragma\s+"[^"\n]*"\s*;)
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_LIMIT = re.compile(r"\s*\.(?P<name>\w+)\s*(?P<values>[^.]*)")
_LOC = re.compile(
    r"\s*(\d+)\s+(\d+)\s+(\d+)(?:\s*,\s*function_name\s+[^\s,]+\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?\s*"
)
_HARMLESS_LIMITS = ("minnctapersm", "maxnctapersm", "maxnreg", "maxclusterrank")
"""Advice to the assembler about registers and blocks: no result depends on it."""
_REFUSED = {
    "call": "calls aren't supported: mark the function __forceinline__",
    "brx": "branches through a table aren't supported",
    **dict.fromkeys(
        ("tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep"), "textures aren't supported"
    ),
}


def parse(text: str) -> Module:
    """Read a PTX text.

    Args:
        text: what NVRTC emits, for a compute capability of 7.5 or more. NUL bytes at its end are ignored.

    Returns:
        Its kernels and variables. Labels and variables of one name in several scopes of a kernel are told
        apart: the second is called ``name@2``.

    Raises:
        PtxError: what can't be read, with its line.
    """
    source = Source.of(text.rstrip("\0"))
    reader = _Reader(source)
    position = 0
    while True:
        match = _TOP.match(source.text, position)
        if match is None:
            start = _start(source, position)
            if re.compile(r"(?:\.(?:visible|extern|weak)\s+)?\.func\b").match(source.text, start):
                source.refuse(start, "functions aren't supported: mark them __forceinline__")
            source.refuse(start, "this is nothing that solvergen can read outside of a kernel")
        if match.lastgroup == "end":
            return reader.module()
        position = reader.take(match)


@dataclass(slots=True)
class _Reader:
    source: Source
    version: tuple[int, int] | None = None
    target: str | None = None
    variables: list[Variable] = field(default_factory=list)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    scope: Scope = field(default_factory=lambda: Scope(None, [], set()))

    def module(self) -> Module:
        if self.version is None or self.target is None:
            raise PtxError("this is no PTX: .version and .target are missing")
        return Module(self.version, self.target, self.kernels, tuple(self.variables))

    def take(self, match: re.Match[str]) -> int:
        """Take what a match of ``_TOP`` found; the position behind it."""
        kind = match.lastgroup or ""
        at = match.start(kind)
        if kind == "entry":
            return self._kernel(match)
        if kind == "version":
            self.version = (int(match["major"]), int(match["minor"]))
        elif kind == "target":
            self.target = match["architecture"]
        elif kind == "size" and match["bits"] != "64":
            self.source.refuse(at, "addresses of 32 bits aren't supported")
        elif kind == "variable":
            extern = match["linking"] == "extern"
            try:
                declared = match["declared"].strip()
                self.variables.append(
                    declarations.variable(self.scope, match["space"], declared, extern=extern)
                )
            except Unreadable as problem:
                self.source.refuse(at, str(problem))
        return match.end()

    def _kernel(self, match: re.Match[str]) -> int:
        at = match.start("entry")
        name = match["kernel"]
        scope = Scope(self.scope, [], set(self.scope.taken))
        try:
            if name in self.kernels:
                raise Unreadable(f"there are two kernels {name}")
            parameters = declarations.parameters(scope, match["parameters"] or "")
            limits = _limits(match["limits"])
        except Unreadable as problem:
            self.source.refuse(at, str(problem))
        statements, end = body_statements(self.source, match.end())
        body = _Body(scope, _scopes(scope, statements))
        body.read(statements)
        self.kernels[name] = Kernel(
            name=name,
            parameters=parameters,
            registers=tuple(scope.registers),
            variables=tuple(body.variables),
            instructions=tuple(body.instructions),
            labels=body.labels,
            max_threads=limits.get("maxntid"),
            required_threads=limits.get("reqntid"),
        )
        return end


def _limits(text: str) -> dict[str, tuple[int, int, int]]:
    """What an entry says of its blocks' sizes, between its parameters and its body."""
    found: dict[str, tuple[int, int, int]] = {}
    text = re.sub(r'\.pragma\s+"[^"\n]*"\s*;', "", text).rstrip()
    position = 0
    while position < len(text):
        match = _LIMIT.match(text, position)
        if match is None:
            raise Unreadable(
                f"{text[position:].strip()!r} is nothing that solvergen can read before a kernel's body"
            )
        name, values = match["name"], [value.strip() for value in match["values"].split(",")]
        if name in ("maxntid", "reqntid") and len(values) <= 3 and all(map(str.isdecimal, values)):
            x, y, z = (*map(int, values), 1, 1)[:3]
            found[name] = (x, y, z)
        elif name not in _HARMLESS_LIMITS:
            raise Unreadable(f".{name} {match['values'].strip()}: solvergen doesn't know this of a kernel")
        position = match.end()
    return found


def _scopes(outermost: Scope, statements: list[Statement]) -> list[Scope]:
    """The scopes that braces open, in their order, with their labels: branches go forward, too."""
    found: list[Scope] = []
    open_ = [outermost]
    for statement in statements:
        if statement.kind == "open":
            found.append(open_[-1].inner())
            open_.append(found[-1])
        elif statement.kind == "close":
            open_.pop()
        elif statement.kind == "label":
            try:
                open_[-1].declare_symbol(statement.match["label_name"])
            except Unreadable as problem:
                statement.refuse(str(problem))
    return found


class _Body:
    """What stands between the braces of a kernel."""

    def __init__(self, scope: Scope, inner: list[Scope]) -> None:
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self._open = [scope]
        self._inner = iter(inner)
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._line = 0
        self._calls: tuple[int, ...] = ()
        self._calls_to: dict[tuple[str, ...], tuple[int, ...]] = {}

    def read(self, statements: list[Statement]) -> None:
        for statement in statements:
            kind = statement.kind
            try:
                if kind == "instruction":
                    self._instruction(statement)
                elif kind == "loc":
                    self._location(statement.match["position"])
                elif kind == "label":
                    symbol = self._open[-1].names[statement.match["label_name"]]
                    assert isinstance(symbol, Symbol)
                    self.labels[symbol.name] = len(self.instructions)
                elif kind == "open":
                    self._open.append(next(self._inner))
                elif kind == "close":
                    self._open.pop()
                else:
                    self._directive(statement.match["directive_name"], statement.match["arguments"])
            except Unreadable as problem:
                statement.refuse(str(problem))

    def _instruction(self, statement: Statement) -> None:
        negated, predicate, written, operands = statement.match.group(
            "negated", "predicate", "opcode", "operands"
        )
        scope = self._open[-1]
        name = self._opcodes.get(written)
        if name is None:
            opcode, *modifiers = written.split(".")
            if opcode in _REFUSED:
                raise Unreadable(_REFUSED[opcode])
            name = self._opcodes[written] = (opcode, tuple(modifiers))
        guard = None if predicate is None else Guard(scope.register(predicate), negated == "!")
        self.instructions.append(
            Instruction(
                *name,
                scope.operands(operands) if operands else (),
                guard,
                Place(statement.line, statement.text, self._line, self._calls),
            )
        )

    def _location(self, text: str) -> None:
        """``.loc file line column``, which holds until the next one, whatever is between.

        An inlined function's names the place of its call; a call within a call is found by that place's own.
        """
        match = _LOC.fullmatch(text)
        if match is None:
            raise Unreadable("this is no .loc that solvergen can read")
        here, call = match.group(1, 2, 3), match.group(4, 5, 6)
        self._line = int(here[1])
        self._calls = () if call[0] is None else (int(call[1]), *self._calls_to.get(call, ()))
        self._calls_to[here] = self._calls

    def _directive(self, name: str, arguments: str) -> None:
        scope = self._open[-1]
        if name == "reg":
            declarations.declare_registers(scope, arguments)
        elif name in _SPACES:
            self.variables.append(declarations.variable(scope, name, arguments.strip()))
        elif name == "extern":
            space, _, rest = arguments.strip().partition(" ")
            if space != ".shared":
                raise Unreadable("this is defined in another module")
            self.variables.append(declarations.variable(scope, "shared", rest.strip(), extern=True))
        elif name != "pragma":
            raise Unreadable(f".{name} isn't supported in a kernel")


def _start(source: Source, position: int) -> int:
    """The first position from ``position`` on that isn't blank."""
    rest = source.text[position:]
    return position + len(rest) - len(rest.lstrip())
