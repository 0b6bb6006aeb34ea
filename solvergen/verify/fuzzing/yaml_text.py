"""Drawn specs as YAML, in many layouts that mean the same: block and flow, three ways of quoting, text over
several lines, comments, blank lines, sections in any order, Windows' line ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solvergen.verify.fuzzing.rule import AGAIN, Assignment, Rule, StateRule
from solvergen.verify.fuzzing.spec import DrawnSpec, Range
from solvergen.verify.fuzzing.style import PLAIN, Style
from solvergen.verify.fuzzing.terms import GRADIENT, Term
from solvergen.verify.fuzzing.texts import written


@dataclass(frozen=True)
class Literal:
    """A number, ``true`` or ``false``: never quoted."""

    text: str


Node = str | Literal | Mapping[str, "Node"] | Sequence["Node"]

_BARE = re.compile(r"[A-Za-z(][A-Za-z0-9 _.+*/%()<>=!-]*")
_BARE_IN_BLOCK = re.compile(r"[A-Za-z(][A-Za-z0-9 _.+*/%()<>=!,{}\[\]'\"&|-]*")
_WORDS = frozenset({"true", "false", "null", "nan", "inf"})


def yaml_of(spec: DrawnSpec, style: Style = PLAIN, *, spelling: bool = True) -> str:
    """``spec`` as the text of a file. ``spelling``: may equations be spelt differently, or blanks alone
    differ?"""
    return _Writer(style, spelling).document(spec)


class _Writer:
    def __init__(self, style: Style, spelling: bool) -> None:
        self.style = style
        self.spelling = spelling

    def term(self, term: Term) -> str:
        return written(term, self.style, spelling=self.spelling)

    def document(self, spec: DrawnSpec) -> str:
        sections: dict[str, Node] = {"name": spec.name}
        if spec.class_name is not None:
            sections["class_name"] = spec.class_name
        sections |= spec.prose
        sections["hyperparameters"] = {
            name: _range(r, spec.rule.hyperparameters[name]) | _doc(spec, name)
            for name, r in spec.ranges.items()
        }
        rule = spec.rule
        if rule.options:
            sections["options"] = {o.name: self.option(o.default) | _doc(spec, o.name) for o in rule.options}
        if rule.states:
            sections["state"] = {s.name: self.state(s) | _doc(spec, s.name) for s in rule.states}
        if rule.constraints:
            sections["constraints"] = [
                {
                    "that": self.term(c.that),
                    **({"when": self.term(c.when)} if c.when else {}),
                    "message": message,
                }
                for c, message in zip(rule.constraints, spec.messages, strict=True)
            ]
        sections["update"] = self.statements(rule)
        lines = ["---"] if self.style.one_in(8) else []
        for key in self.style.shuffled(list(sections)):
            lines += self.between()
            lines += self.entry(f"{key}:", sections[key], 0)
        end = self.style.choose(("\n", "\n", "\r\n"))
        return self.style.choose(("", "", "", "\ufeff")) + end.join(lines) + end

    def option(self, default: bool | Term) -> dict[str, Node]:
        if isinstance(default, bool):
            return {} if not default and self.style.one_in(3) else {"default": Literal(str(default).lower())}
        return {"default": self.term(default)}

    def state(self, state: StateRule) -> dict[str, Node]:
        found: dict[str, Node] = {}
        init = state.init
        if init is None:
            found["init"] = "param"
        elif init.op == "number":
            found["init"] = Literal(init.text)
        elif init.op == "neg" and init.args[0].op == "number":
            found["init"] = Literal(f"-{init.args[0].text}")
        else:
            found["init"] = self.term(init)
        if state.shape != "param":
            found["shape"] = state.shape
        if state.when is not None:
            found["when"] = self.term(state.when)
        return found

    def statements(self, rule: Rule) -> list[Node]:
        """Equations; neighbours under the same ``when`` sometimes in one list."""
        found: list[Node] = []
        group: list[Assignment] = []
        for statement in rule.update:
            if group and (
                statement.when is None or statement.when != group[0].when or not self.style.one_in(2)
            ):
                found.append(self.group(group))
                group = []
            group.append(statement)
        found.append(self.group(group))
        return found

    def group(self, group: Sequence[Assignment]) -> Node:
        space = self.style.choose((" ", " ", "", "  "))
        # A sign glued to the `=` would be another operator's name.
        equations = [
            GRADIENT if s == AGAIN else f"{s.target}{space}={space}{self.term(s.value)}" for s in group
        ]
        if group[0].when is None:
            assert len(group) == 1
            return equations[0]
        return {"when": self.term(group[0].when), "do": equations if len(equations) > 1 else equations[0]}

    def between(self) -> list[str]:
        """What may stand between two entries."""
        return self.style.choose(([], [], [""], ["# a comment: with 'quotes'"], ["", "  # {more}", ""]))

    def entry(self, head: str, node: Node, indent: int) -> list[str]:
        """The lines of ``head`` (a key with its colon, or a dash) and ``node``."""
        pad = " " * indent
        if isinstance(node, (str, Literal)):
            return self.scalar(pad + head, node, indent)
        if self.style.one_in(3) or not node:
            return [f"{pad}{head} {self.flow(node)}" + self.remark()]
        deeper = indent + self.style.choose((2, 2, 4, 1))
        lines: list[str] = []
        if isinstance(node, Mapping):
            keys = self.style.shuffled(list(node)) if _is_record(node) else list(node)
            for key in keys:
                lines += [*self.between(), *self.entry(f"{self.key(key)}:", node[key], deeper)]
        else:
            for item in node:
                lines += [*self.between(), *self.entry("-", item, deeper)]
        return [f"{pad}{head}{self.remark()}", *lines]

    def key(self, key: str) -> str:
        return self.style.choose((key, key, key, f'"{key}"', f"'{key}'"))

    def remark(self) -> str:
        return self.style.choose(("", "", "", "  # remark: x = [1"))

    def scalar(self, head: str, node: str | Literal, indent: int) -> list[str]:
        if isinstance(node, Literal):
            return [f"{head} {node.text}{self.remark()}"]
        bare = (
            _BARE_IN_BLOCK.fullmatch(node) is not None and node.lower() not in _WORDS and node == node.strip()
        )
        forms = ["double"]
        if "\n" not in node and "\t" not in node:
            forms.append("single")
        if bare:
            forms = ["bare", "bare", "bare", *forms, "folded", "lines"]
        form = self.style.choose(forms)
        if form == "bare":
            return [f"{head} {node}{self.remark()}"]
        if form == "folded":
            # With the line end that `|` and `>` leave, a word isn't that word any more.
            marks = (">-", "|-") if re.fullmatch(r"\w+", node) else (">-", ">", "|-", "|")
            return [f"{head} {self.style.choose(marks)}", f"{' ' * indent}   {node}"]
        if form == "lines":
            return self.over_lines(head, node, indent)
        return [f"{head} {_quoted(node, form)}{self.remark()}"]

    def over_lines(self, head: str, text: str, indent: int) -> list[str]:
        """A bare text broken at blanks; lines that follow are indented more."""
        parts = [text]
        for match in reversed(list(re.finditer(r"(?<=\S) (?=\S)", text))):
            if self.style.one_in(4):
                parts[:1] = [parts[0][: match.start()], parts[0][match.end() :]]
        if any(
            part.startswith(("-", "|", ">", "&", "*", "%", "'", '"', "[", "]", "{", "}", ",", "!", "="))
            for part in parts
        ):
            return [f"{head} {text}"]
        return [f"{head} {parts[0]}", *(f"{' ' * indent}     {part}" for part in parts[1:])]

    def flow(self, node: Node) -> str:
        if isinstance(node, Literal):
            return node.text
        if isinstance(node, str):
            bare = _BARE.fullmatch(node) is not None and node.lower() not in _WORDS and node == node.strip()
            forms = (["bare", "bare"] if bare else []) + [
                "double",
                *([] if "\n" in node or "\t" in node else ["single"]),
            ]
            form = self.style.choose(forms)
            return node if form == "bare" else _quoted(node, form)
        comma = self.style.choose((", ", ","))
        if isinstance(node, Mapping):
            keys = self.style.shuffled(list(node)) if _is_record(node) else list(node)
            return "{" + comma.join(f"{key}: {self.flow(node[key])}" for key in keys) + "}"
        return "[" + comma.join(self.flow(item) for item in node) + "]"


def _is_record(node: Mapping[str, Node]) -> bool:
    """Are its keys the language's, whose order means nothing, and not names?"""
    return all(isinstance(value, (str, Literal)) or key == "do" for key, value in node.items())


def _range(r: Range, whole: bool) -> dict[str, Node]:
    found: dict[str, Node] = {"default": Literal(r.default)}
    found |= {bound: Literal(text) for bound, text in r.bounds.items()}
    return found | ({"integer": Literal("true")} if whole else {})


def _doc(spec: DrawnSpec, name: str) -> dict[str, Node]:
    return {"doc": spec.docs[name]} if name in spec.docs else {}


def _quoted(text: str, form: str) -> str:
    if form == "single":
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=False)
