"""What the class of a spec says of itself."""

from __future__ import annotations

import pytest

from solvergen.emit.docstring import counterpart_text, docstring_lines
from solvergen.spec.model import Counterpart
from tests.unit.spec.support import MINIMAL, read
from tests.unit.spec.test_reader import EVERYTHING


@pytest.mark.parametrize(
    ("counterpart", "text"),
    [
        (Counterpart("torch", "torch.optim.SGD"), "the same names."),
        (
            Counterpart("l", "l.f", (("lr", "learning_rate"), ("b", "1 - c"))),
            "lr is learning_rate, b is 1 - c.",
        ),
        (Counterpart("l", "l.f", lacks=("a", "b")), "the same names. Without a, b."),
        (
            Counterpart("l", "l.f", (("a", "b"),), ("c",), "Epsilon is elsewhere."),
            "a is b. Without c. Epsilon is elsewhere.",
        ),
    ],
)
def test_what_another_library_calls_it(counterpart, text):
    assert counterpart_text(counterpart) == text


def test_all_sections_in_order(tmp_path):
    lines = docstring_lines(read(tmp_path, EVERYTHING), has_blocks=False)
    heads = [
        line for line in lines if line.endswith(":") and not line.startswith(" ") and line.count(" ") == 0
    ]
    assert heads == ["Args:", "State:", "Conventions:", "Counterparts:", "References:"]
    assert "    torch.optim.SGD: the same names." in lines
    assert any(
        line.startswith("    optax.sgd: lr is learning_rate, momentum is 1 - decay.") for line in lines
    )
    assert "for the caller to read" in " ".join(lines[lines.index("State:") :])


def test_an_argument_that_its_spec_says_nothing_of_has_a_sentence_too(tmp_path):
    text = MINIMAL.replace("hyperparameters:\n", "hyperparameters:\n  gain: {default: 1.0}\n")
    lines = docstring_lines(read(tmp_path, text + "options:\n  swap: {default: false}\n"), has_blocks=False)
    assert "    gain: any number." in lines
    assert "    swap: True or False." in lines
    assert not any(line.endswith(": .") for line in lines)
