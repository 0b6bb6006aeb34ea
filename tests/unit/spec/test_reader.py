"""Files and folders of specs: what is read, and what is said when one can't be."""

from __future__ import annotations

import os
import stat

import pytest

from solvergen.errors import SpecError
from solvergen.spec.characters import first_refused
from solvergen.spec.files import spec_files
from solvergen.spec.limits import MAX_BYTES, MAX_DIAGNOSTICS
from solvergen.spec.model import Counterpart
from solvergen.spec.reader import examine, read_spec, read_specs
from tests.unit.spec.support import MINIMAL, codes, findings, only, read, section, write

EVERYTHING = """\
name: every_thing
class_name: Everything
summary: >
  A rule with
  all there is.
description: |
  First paragraph.

  Second paragraph.
reference:
  {title: "A: B", authors: "C; D", year: 2015, arxiv: "1412.6980", doi: 10.1/x, url: "https://example.org/x",
   note: n}
conventions:
  - One is
    this.
counterparts:
  - {library: torch, name: torch.optim.SGD}
  - {library: optax, name: optax.sgd, maps: {lr: learning_rate, momentum: "1 -  decay"},
     lacks: [nesterov, decay], note: another   default}
hyperparameters:
  lr: {default: 1e-3, min: 0, doc: learning  rate}
  momentum: {default: 0, min: 0, below: 1}
  every: {default: 3, above: 0, max: 9, integer: true}
options:
  decay: {doc: off unless given}
  nesterov: {default: true}
  buffered: {default: momentum != 0}
state:
  m: {when: buffered}
  slow: {init: param, output: true}
  scale: {init: 1 - momentum, shape: scalar, doc: one a tensor}
  v: {init: 1}
constraints:
  - {that: momentum > 0, when: nesterov, message: "nesterov needs\\n momentum"}
  - that: lr < 1
    message: lr is large
update:
  - scale = scale*momentum
  - when: buffered
    do:
      - m = momentum*m
          + grad
      - m = m + 1
  - {when: decay, do: "m = max(m, v)"}
  - {do: "v = v + 1"}
  - "param = param - lr*m"
"""


def test_all_that_a_spec_can_say(tmp_path):
    spec = read(tmp_path, EVERYTHING)
    assert (spec.name, spec.class_name) == ("every_thing", "Everything")
    assert spec.summary == "A rule with all there is."
    assert spec.description == "First paragraph.\n\nSecond paragraph."
    assert spec.conventions == ("One is this.",)
    (reference,) = spec.references
    assert (reference.title, reference.authors, reference.year) == ("A: B", "C; D", "2015")
    assert (reference.arxiv, reference.doi) == ("1412.6980", "10.1/x")
    assert (reference.url, reference.note) == ("https://example.org/x", "n")

    torch, optax = spec.counterparts
    assert torch == Counterpart("torch", "torch.optim.SGD")
    assert (optax.library, optax.name, optax.note) == ("optax", "optax.sgd", "another default")
    assert optax.maps == (("lr", "learning_rate"), ("momentum", "1 - decay"))
    assert optax.lacks == ("nesterov", "decay")

    lr, momentum, every = spec.hyperparameters
    assert (lr.name, lr.default, lr.min, lr.max, lr.above, lr.below) == ("lr", 1e-3, 0.0, None, None, None)
    assert (lr.integer, lr.doc) == (False, "learning rate")
    assert (momentum.default, momentum.min, momentum.below) == (0.0, 0.0, 1.0)
    assert isinstance(momentum.default, float)
    assert isinstance(momentum.min, float)
    assert (every.default, every.above, every.max, every.integer) == (3.0, 0.0, 9.0, True)

    decay, nesterov, buffered = spec.options
    assert (decay.default, nesterov.default) == (False, True)
    assert (decay.is_derived, buffered.is_derived) == (False, True)
    assert buffered.default.text == "momentum != 0"
    assert spec.option_names == ("decay", "nesterov", "buffered")

    m, slow, scale, v = spec.state
    assert (m.init, m.shape, m.when.text) == (0.0, "param", "buffered")
    assert (slow.copies_param, m.copies_param) == (True, False)
    assert (slow.output, m.output) == (True, False)
    assert (scale.init.text, scale.is_scalar, scale.when) == ("1 - momentum", True, None)
    assert (v.init, isinstance(v.init, float)) == (1.0, True)

    first, second = spec.constraints
    assert (first.that.text, first.when.text) == ("momentum > 0", "nesterov")
    assert first.message == "nesterov needs momentum"
    assert (second.that.text, second.when) == ("lr < 1", None)

    assert [(s.equation.text, s.when and s.when.text) for s in spec.update] == [
        ("scale = scale*momentum", None),
        ("m = momentum*m + grad", "buffered"),
        ("m = m + 1", "buffered"),
        ("m = max(m, v)", "decay"),
        ("v = v + 1", None),
        ("param = param - lr*m", None),
    ]


def test_what_may_be_left_out(tmp_path):
    spec = read(tmp_path, MINIMAL)
    assert spec.class_name == "Rule"
    assert spec.description == ""
    assert (spec.references, spec.options, spec.state, spec.constraints, spec.conventions) == ((),) * 5
    assert spec.counterparts == ()


def test_a_section_with_nothing_under_it_is_empty(tmp_path):
    assert read(tmp_path, MINIMAL + "options:\nstate:\n  # m: {init: 0}\n").state == ()


def test_places(tmp_path):
    spec = read(tmp_path, EVERYTHING)
    assert (spec.location.line, spec.location.column) == (1, 7)
    assert [h.location.line for h in spec.hyperparameters] == [21, 22, 23]
    assert [h.location.column for h in spec.hyperparameters] == [3, 3, 3]
    folded = spec.update[1].equation
    plus = folded.text.index("+")
    assert (folded.locate(plus, plus + 1).line, folded.locate(plus, plus + 1).column) == (42, 11)
    assert folded.line_of(folded.locate(plus, plus + 1)) == "          + grad"
    assert spec.line_of(spec.options[2].location) == "  buffered: {default: momentum != 0}"


def test_the_path_is_kept_as_given(tmp_path, monkeypatch):
    (tmp_path / "specs").mkdir()
    write(tmp_path / "specs", MINIMAL)
    monkeypatch.chdir(tmp_path)
    assert read_spec("specs/rule.yaml").path == "specs/rule.yaml"
    assert read_specs("specs")[0].path == "specs/rule.yaml"
    assert read_specs("./specs/")[0].location.file == "specs/rule.yaml"
    assert read_spec(tmp_path / "specs" / "rule.yaml").path == str(tmp_path / "specs" / "rule.yaml")


def test_specs_are_equal_if_they_say_the_same(tmp_path):
    one = read(tmp_path, MINIMAL)
    (tmp_path / "other").mkdir()
    other = read_spec(write(tmp_path / "other", "# remark\n\n" + MINIMAL))
    assert one == other
    assert hash(one) == hash(other)
    assert one != read(tmp_path, MINIMAL.replace("0.1", "0.2"))


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends(tmp_path, end):
    content = MINIMAL.replace("\n", end)
    assert read(tmp_path, content) == read(tmp_path, MINIMAL)
    assert findings(tmp_path, content.replace("0.1", "abc")) == [("SG012", 4, 17)]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    spec = read(tmp_path, b"\xef\xbb\xbf" + MINIMAL.encode())
    assert (spec.name, spec.location.column) == ("rule", 7)


def test_all_findings_of_a_file_come_at_once_and_in_its_order(tmp_path):
    content = """\
name: Rule
hyperparameters:
  lr: {default: abc}
  lambda: {default: 2, max: 1}
stat:
  m: {init: 0}
update:
  - 5
"""
    assert findings(tmp_path, content) == [
        ("SG011", 1, 1),
        ("SG020", 1, 7),
        ("SG012", 3, 17),
        ("SG021", 4, 3),
        ("SG024", 4, 21),
        ("SG010", 5, 1),
        ("SG012", 8, 5),
    ]


def test_findings_about_numbers_leave_a_spec_to_look_further_at(tmp_path):
    content = MINIMAL.replace("{default: 0.1}", "{default: 0.1, min: 1}")
    spec, found = examine(write(tmp_path, content))
    assert [d.code for d in found] == ["SG024"]
    assert spec is not None
    with pytest.raises(SpecError) as error:
        read_spec(spec.path)
    assert error.value.diagnostics == found


def test_there_is_no_end_to_mistakes_but_to_their_report(tmp_path):
    content = MINIMAL + "".join(f"wrong{i}: 1\n" for i in range(500))
    found = codes(tmp_path, content)
    assert found == ["SG010"] * MAX_DIAGNOSTICS + ["SG003"]
    last = examine(write(tmp_path, content))[1][-1]
    assert last.message == "and 400 more findings from here on"


# --- files that can't be read


@pytest.mark.parametrize("path", ["nowhere.yaml", "nowhere/rule.yaml", "nul\0.yaml", "x" * 5000, ""])
def test_no_such_file(path):
    with pytest.raises(SpecError) as error:
        read_spec(path)
    (found,) = error.value.diagnostics
    assert found.code == "SG001"
    assert found.location.file == path


def test_a_folder_is_no_file(tmp_path):
    assert examine(tmp_path)[1][0].code == "SG001"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (found,) = examine(tmp_path / "pipe.yaml")[1]
    assert (found.code, found.message) == ("SG001", "this is not a regular file")


def test_a_link_that_leads_nowhere_or_in_a_circle(tmp_path):
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nothing")
    assert [d.code for name in ("loop", "gone") for d in examine(tmp_path / f"{name}.yaml")[1]] == [
        "SG001"
    ] * 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = write(tmp_path, MINIMAL)
    os.chmod(path, stat.S_IWUSR)
    assert examine(path)[1][0].code == "SG001"


def test_a_file_that_fails_to_be_read(tmp_path, monkeypatch):
    path = write(tmp_path, MINIMAL)

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    (found,) = examine(path)[1]
    assert (found.code, found.message) == ("SG001", "the file can't be read: Permission denied")


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (b"name: caf\xe9\n", 1, 10),
        (b"name: a\nsummary: \xe2\x82\n", 2, 10),
        ("name: ü\nx: ".encode() + b"\xff", 2, 4),
        ("name: a".encode("utf-16"), 1, 1),
        ("name: a".encode("utf-16-le"), 1, 2),
        (b"name: a\0b", 1, 8),
        (b"a: b\r\nname: \x1b[31m", 2, 7),
        ("name: a\x85b".encode(), 1, 8),
        ("name: a\u2028b".encode(), 1, 8),
        ("name: a\u202eb".encode(), 1, 8),
        ("name: a\u2066b".encode(), 1, 8),
        ("name: a\ufeffb".encode(), 1, 8),
        ("name: a\ufffeb".encode(), 1, 8),
        (b"name: a\x7f", 1, 8),
    ],
)
def test_bytes_and_characters_that_are_no_text(tmp_path, content, line, column):
    assert findings(tmp_path, content) == [("SG002", line, column)]


@pytest.mark.parametrize(
    ("escape", "column"), [("\\0", 11), ("a\\x1b", 12), ("a b\\u202E", 14), ("\\ud800", 11), ("\\_\\N", 13)]
)
def test_an_escape_brings_no_such_character_in(tmp_path, escape, column):
    content = MINIMAL.replace("A rule for a test.", f'"{escape}"')
    assert findings(tmp_path, content) == [("SG002", 2, column)]


@pytest.mark.parametrize("escape", ["\\b", "\\x1b[2J", "a\\u202Eb", "\\ud800", "\\uFEFF"])
def test_no_message_shows_a_character_that_cannot_be_seen(tmp_path, escape):
    content = MINIMAL + f'"{escape}": 1\n"{escape}": 1\n'
    found = examine(write(tmp_path, content))[1]
    assert {d.code for d in found} >= {"SG002", "SG006"}
    assert not [d for d in found if first_refused(d.message) is not None]


def test_other_alphabets_are_welcome_in_prose(tmp_path):
    spec = read(tmp_path, MINIMAL.replace("A rule for a test.", "学習率 ε → 0, naïve 🙂"))
    assert spec.summary == "学習率 ε → 0, naïve 🙂"


def test_a_file_may_be_so_large_and_no_larger(tmp_path):
    room = MAX_BYTES - len(MINIMAL)
    assert codes(tmp_path, MINIMAL + "#" * room) == []
    assert codes(tmp_path, MINIMAL + "#" * (room + 1)) == ["SG003"]


# --- folders


def test_a_folder_is_read_by_name(tmp_path):
    for name, file in (("zeta", "a.yaml"), ("alpha", "z.yml"), ("beta", "m.yaml")):
        write(tmp_path, MINIMAL.replace("rule", name, 1), file)
    write(tmp_path, "no spec: [", ".hidden.yaml")
    write(tmp_path, "no spec: [", "notes.txt")
    (tmp_path / "deeper").mkdir()
    write(tmp_path / "deeper", "no spec: [")
    assert [spec.name for spec in read_specs(tmp_path)] == ["alpha", "beta", "zeta"]


def test_one_file_is_as_good_as_a_folder(tmp_path):
    path = write(tmp_path, MINIMAL)
    assert read_specs(path) == (read_spec(path),)


def test_several_files_and_folders(tmp_path):
    (tmp_path / "one").mkdir()
    inside = write(tmp_path / "one", MINIMAL.replace("rule", "inner", 1))
    outside = write(tmp_path, MINIMAL)
    specs = read_specs(tmp_path / "one", outside, inside)
    assert [spec.name for spec in specs] == ["inner", "rule"]


def test_what_is_wrong_in_all_files_comes_at_once(tmp_path):
    write(tmp_path, MINIMAL.replace("0.1", "abc"), "a.yaml")
    write(tmp_path, MINIMAL.replace("rule", "good", 1), "b.yaml")
    write(tmp_path, MINIMAL.replace("lr:", "lambda:"), "c.yaml")
    with pytest.raises(SpecError) as error:
        read_specs(tmp_path, tmp_path / "nowhere")
    assert [d.code for d in error.value.diagnostics] == ["SG012", "SG021", "SG001"]


def test_a_folder_without_specs(tmp_path):
    files, problem = spec_files(tmp_path)
    assert files == ()
    assert problem is not None
    assert problem.code == "SG001"
    assert problem.hint is not None
    assert f"`solvergen new NAME --specs {tmp_path}`" in problem.hint
    with pytest.raises(SpecError, match="no specs in this folder"):
        read_specs(tmp_path)


def test_an_empty_folder_called_specs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    problem = spec_files("specs")[1]
    assert problem is not None
    assert problem.hint is not None
    assert "`solvergen new NAME`" in problem.hint


def test_two_specs_with_one_name(tmp_path):
    write(tmp_path, MINIMAL, "a.yaml")
    write(tmp_path, "# the same\n" + MINIMAL, "b.yaml")
    with pytest.raises(SpecError) as error:
        read_specs(tmp_path)
    (found,) = error.value.diagnostics
    assert (found.code, found.location.file, found.location.line) == ("SG023", f"{tmp_path}/b.yaml", 2)
    assert f"{tmp_path}/a.yaml" in found.message


def test_two_specs_with_one_class(tmp_path):
    write(tmp_path, MINIMAL.replace("name: rule", "name: a_b"), "a.yaml")
    write(tmp_path, MINIMAL.replace("name: rule", "name: ab\nclass_name: AB"), "b.yaml")
    with pytest.raises(SpecError) as error:
        read_specs(tmp_path)
    assert [d.code for d in error.value.diagnostics] == ["SG023"]
    assert "class name 'AB'" in error.value.diagnostics[0].message


def test_the_message_of_the_error_has_every_finding(tmp_path):
    path = write(tmp_path, MINIMAL.replace("0.1", "abc") + "wrong: 1\n")
    with pytest.raises(SpecError) as error:
        read_spec(path)
    first, second = str(error.value).splitlines()
    assert first == (
        f"{path}:4:17: SG012: hyperparameters.lr.default must be a number, not the text 'abc' "
        "(write a number, such as 0.001 or 1e-3)"
    )
    assert second.startswith(f"{path}:7:1: SG010: unknown key 'wrong' (the keys here are name, ")


def test_findings_have_the_line_they_are_about(tmp_path):
    assert only(tmp_path, section("state", "m: {init: true}")).source == "  m: {init: true}"
