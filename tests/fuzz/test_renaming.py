"""Renaming never changes a bit, not even to the names that the compiler itself makes up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from solvergen.compiler import build
from solvergen.spec.names import problem_with_argument, problem_with_name
from solvergen.verify.direct import run_directly
from solvergen.verify.example import Example
from solvergen.verify.fuzzing.rule import Assignment, OptionRule, Requirement, Rule, StateRule
from solvergen.verify.fuzzing.spec import DrawnSpec
from solvergen.verify.fuzzing.strategies import specs
from solvergen.verify.fuzzing.terms import Term
from solvergen.verify.fuzzing.yaml_text import yaml_of
from solvergen.verify.machines import machine
from tests.fuzz.built import SMALL, built, draw_example, hold_to_reference, spec_file
from tests.fuzz.running import fuzz


def _names(rule: Rule) -> dict[str, bool]:
    """Every name that the rule gives, and whether it becomes an argument of the class."""
    names = dict.fromkeys((*rule.hyperparameters, *(o.name for o in rule.options)), True)
    states = [s.name for s in rule.states]
    return names | dict.fromkeys(
        (*states, *(s.target for s in rule.update if s.target not in ("param", "grad"))), False
    )


def _term(term: Term, new: Mapping[str, str]) -> Term:
    if term.op == "name":
        return replace(term, text=new.get(term.text, term.text))
    return replace(term, args=tuple(_term(arg, new) for arg in term.args))


def _renamed(spec: DrawnSpec, new: Mapping[str, str]) -> DrawnSpec:
    def perhaps(term: Term | None) -> Term | None:
        return None if term is None else _term(term, new)

    def name(old: str) -> str:
        return new.get(old, old)

    rule = spec.rule
    return replace(
        spec,
        rule=Rule(
            {name(n): whole for n, whole in rule.hyperparameters.items()},
            tuple(
                OptionRule(name(o.name), o.default if isinstance(o.default, bool) else _term(o.default, new))
                for o in rule.options
            ),
            tuple(StateRule(name(s.name), perhaps(s.init), s.shape, perhaps(s.when)) for s in rule.states),
            tuple(Requirement(_term(c.that, new), perhaps(c.when)) for c in rule.constraints),
            tuple(Assignment(name(s.target), _term(s.value, new), perhaps(s.when)) for s in rule.update),
        ),
        ranges={name(n): r for n, r in spec.ranges.items()},
        docs={name(n): text for n, text in spec.docs.items()},
    )


def _example(example: Example, new: Mapping[str, str]) -> Example:
    def names(values: Mapping[str, object]) -> dict[str, object]:
        return {new.get(n, n): value for n, value in values.items()}

    return replace(
        example,
        groups=tuple(replace(g, options=names(g.options)) for g in example.groups),
        tensors=tuple(replace(t, arrays=names(t.arrays), scalars=names(t.scalars)) for t in example.tensors),
        steps=tuple(
            replace(s, hyperparameters=tuple(names(h) for h in s.hyperparameters)) for s in example.steps
        ),
        shared=names(example.shared),
    )


def _made_up(text: str) -> list[str]:
    """All words of everything that is generated, in a stable order."""
    with spec_file(text) as path:
        texts = build([path], wrap=False).artifacts
    words = {word for body in texts.values() for word in re.findall(r"[A-Za-z]\w*", body, re.ASCII)}
    return sorted(word for word in words if problem_with_name(word) is None)


def test_names_of_the_generated_code_may_be_the_specs() -> None:
    cpu = machine("cpu")

    def same(spec: DrawnSpec, data: st.DataObject) -> None:
        words = _made_up(yaml_of(spec))
        fitting = [word for word in words if problem_with_argument(word) is None]
        new: dict[str, str] = {}
        # These two names mean something: lr_mult and decay_mult multiply what they are called.
        names = {n: argument for n, argument in _names(spec.rule).items() if n not in ("lr", "weight_decay")}
        for old, is_argument in names.items():
            chosen = data.draw(st.sampled_from(fitting if is_argument else words))
            if chosen not in new.values() and chosen not in (*_names(spec.rule), "param", "grad", "t"):
                new[old] = chosen
        with built(yaml_of(spec)) as before:
            example = draw_example(data, before, SMALL)
            expected = run_directly(before.optimizer.definition, example)
        with built(yaml_of(_renamed(spec, new))) as after:
            example = _example(example, new)
            found = run_directly(after.optimizer.definition, example)
            hold_to_reference(after, cpu, example)
        for moment, other in zip(expected, found, strict=True):
            assert moment.counts == other.counts
            for tensor, buffers in moment.buffers.items():
                for buffer, array in buffers.items():
                    assert array.tobytes() == other.buffers[tensor][new.get(buffer, buffer)].tobytes()

    fuzz(same, specs(), examples=25)
