"""Faults are found where they should be, tried one by one in processes of their own, and counted."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from solvergen.runtime.workspace import KernelWorkspace
from solvergen.verify import built_from, find_disagreement, shipped, why_unavailable
from solvergen.verify.mutations import (
    KINDS,
    Experiment,
    Mutant,
    Outcome,
    Score,
    Target,
    sample,
    steps,
    subject,
)
from solvergen.verify.mutations.c_faults import faults_in_kernel
from solvergen.verify.mutations.conditions import active_lines
from solvergen.verify.mutations.host_faults import faults_in_scalars
from solvergen.verify.mutations.steps import OF_STEPS

ROOT = Path(__file__).parents[3]

UPDATE = """\
SG_FUNCTION sg_real sg_max(sg_real a, sg_real b) {
    return (a > b || a != a) ? a : b;
}
static void sg_run(sg_param *restrict sg_param_at, sg_state *restrict sg_m_at, const sg_real *sg_row,
                   int sg_count) {
    const sg_real decay = sg_row[1];
    for (int sg_i = 0; sg_i < sg_count; ++sg_i) {
        const sg_real param = sg_param_load(sg_param_at, sg_i);
        const sg_real m = sg_state_load(sg_m_at, sg_i);
#if SG_OPTION_nesterov
        const sg_real g = -param;
#else
        const sg_real g = param;
#endif
        // m = decay*m + 0.1*(g - m)
        const sg_real m_new = decay * m + (sg_real)0.1 * (g - m);
        sg_state_store(sg_m_at, sg_i, m_new);
    }
}
"""


def changes(text: str, kind: str) -> set[tuple[str, str]]:
    return {(m.source.strip(), m.changed) for m in faults_in_kernel(text, "kernel.c") if m.kind == kind}


def of_line(line: str, kind: str) -> set[str]:
    return {after for before, after in changes(UPDATE, kind) if before == line}


EQUATION = "const sg_real m_new = decay * m + (sg_real)0.1 * (g - m);"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "operator",
            {
                "const sg_real m_new = decay / m + (sg_real)0.1 * (g - m);",
                "const sg_real m_new = decay * m - (sg_real)0.1 * (g - m);",
                "const sg_real m_new = decay * m + (sg_real)0.1 / (g - m);",
                "const sg_real m_new = decay * m + (sg_real)0.1 * (g + m);",
            },
        ),
        ("operands", {"const sg_real m_new = decay * m + (sg_real)0.1 * (m - g);"}),
        ("grouping", {"const sg_real m_new = decay * m + (sg_real)0.1 * g - m;"}),
        ("constant", {"const sg_real m_new = decay * m + (sg_real)0.2 * (g - m);"}),
        (
            "ulp",
            {
                "const sg_real m_new = decay * m + (sg_real)0.10000000894069672 * (g - m);",
                "const sg_real m_new = decay * m + (sg_real)0.10000000149011612 * (g - m);",
            },
        ),
        (
            "variable",
            {
                "const sg_real m_new = m * m + (sg_real)0.1 * (g - m);",
                "const sg_real m_new = decay * param + (sg_real)0.1 * (g - m);",
                "const sg_real m_new = decay * m + (sg_real)0.1 * (g - param);",
            },
        ),
    ],
)
def test_the_faults_of_an_expression(kind: str, expected: set[str]) -> None:
    assert of_line(EQUATION, kind) == expected


def test_a_product_and_a_sum_are_contracted_either_way() -> None:
    found = of_line(EQUATION, "contraction")
    assert len(found) == 2
    assert any("__builtin_fma((sg_real)0.1, (g - m), decay * m)" in line for line in found) or any(
        "__builtin_fma(((sg_real)0.1), (g - m), decay * m)" in line for line in found
    )
    assert any("__builtin_fmaf(decay, m, ((sg_real)0.1 * (g - m)))" in line for line in found)
    in_cuda = [m for m in faults_in_kernel(UPDATE, "kernel.cu") if m.kind == "contraction"]
    assert len(in_cuda) == 2
    assert not any("builtin" in m.after for m in in_cuda)


def test_the_faults_of_the_other_lines() -> None:
    assert of_line("const sg_real decay = sg_row[1];", "row") == {"const sg_real decay = sg_row[0];"}
    assert of_line("const sg_real decay = sg_row[1];", "float32 scalar") == {
        "const sg_real decay = (float)sg_row[1];"
    }
    load = "const sg_real m = sg_state_load(sg_m_at, sg_i);"
    assert of_line(load, "load") == {"const sg_real m = (sg_real)0.0;"}
    assert of_line(load, "buffer") == {"const sg_real m = sg_state_load(sg_param_at, sg_i);"}
    store = "sg_state_store(sg_m_at, sg_i, m_new);"
    assert of_line(store, "store") == {
        ";",
        "sg_state_store(sg_m_at, sg_i, m);",
    }
    assert of_line("#if SG_OPTION_nesterov", "option") == {"#if !SG_OPTION_nesterov"}
    loop = "for (int sg_i = 0; sg_i < sg_count; ++sg_i) {"
    assert of_line(loop, "bounds") == {
        "for (int sg_i = 1; sg_i < sg_count; ++sg_i) {",
        "for (int sg_i = 0; sg_i <= sg_count; ++sg_i) {",
        "for (int sg_i = 0; sg_count < sg_i; ++sg_i) {",
        "for (int sg_i = 0; sg_i < sg_count; sg_i += 2) {",
    }
    select = "return (a > b || a != a) ? a : b;"
    assert of_line(select, "functions") >= {
        "return (a >= b || a != a) ? a : b;",
        "return (a > b && a != a) ? a : b;",
        "return (a > b || a == a) ? a : b;",
        "return (a > b || a != a) ? b : (a);",
    }


@pytest.mark.parametrize("file", ["kernel.c", "kernel.cu", "scalars.py"])
@pytest.mark.parametrize("name", ["adam", "lion", "sgd", "sm3"])
def test_every_fault_is_one_change_of_one_place(name: str, file: str) -> None:
    text = Path(shipped()[name].definition.folder, file).read_text(encoding="utf-8")
    faults = faults_in_scalars(text) if file == "scalars.py" else faults_in_kernel(text, file)
    assert len(faults) > 15
    assert len({mutant.applied(text) for mutant in faults}) > 0.98 * len(faults)
    for mutant in faults:
        wrong = mutant.applied(text)
        assert wrong != text
        assert mutant.kind in KINDS
        assert text.splitlines()[mutant.line - 1] in mutant.source
        assert wrong[: mutant.start] == text[: mutant.start]
        if file == "scalars.py":
            ast.parse(wrong)
    assert not any("//" in mutant.before for mutant in faults)  # comments are left alone


def test_a_fault_knows_its_function() -> None:
    text = Path(shipped()["lamb"].definition.folder, "kernel.c").read_text(encoding="utf-8")
    faults = faults_in_kernel(text, "kernel.c")
    assert {mutant.function for mutant in faults} >= {"sg_first_row", "sg_run_1", "sg_stage_2"}
    partials = {mutant.function for mutant in faults if "sg_partials[0] = " in mutant.source}
    assert partials == {"sg_pass_0", "sg_pass_1"}  # the same lines, and other functions
    assert {m.function for m in faults if "sg_partials[1] = " in m.source} == {"sg_pass_1"}


def test_only_tables_that_a_rule_looks_at_are_wrong() -> None:
    target = Target("none", "kernel.c", _no_backend, _no_image, staged_tables=OF_STEPS)

    def tables(name: str) -> set[str]:
        return {fault.table for fault in target.tables_of(shipped()[name].definition)}

    assert "leader" in tables("prodigy")  # its tensors share states
    assert tables("lamb") == tables("prodigy") - {"leader"}
    assert "size" not in tables("prodigy")  # nothing is a mean over all tensors
    with built_from([ROOT / "tests/support/specs/reductions.yaml"]) as optimizers:
        made = target.tables_of(optimizers["reductions"].definition)
    assert {"leader", "size"} <= {fault.table for fault in made}


def test_hints_are_no_faults() -> None:
    beside = "        const sg_real param = "
    fetched = f"        __builtin_prefetch(sg_param_at + 2 * sg_i);\n{beside}"
    assert len(faults_in_kernel(UPDATE.replace(beside, fetched), "kernel.c")) == len(
        faults_in_kernel(UPDATE, "kernel.c")
    )


def test_sums_and_addresses_are_not_flushed() -> None:
    """No processor flushes doubles or whole numbers where it keeps subnormal elements."""
    for name, file in (("lamb", "kernel.c"), ("adafactor", "kernel.cu")):
        text = Path(shipped()[name].definition.folder, file).read_text(encoding="utf-8")
        flushed = [mutant for mutant in faults_in_kernel(text, file) if mutant.kind == "flush"]
        assert flushed
        assert all("sg_real" in mutant.source or "sg_lanes_" not in mutant.source for mutant in flushed)
        assert not any("sg_lines." in mutant.source for mutant in flushed)


def test_kernels_of_the_same_lines_are_one_to_the_compiler() -> None:
    lamb = subject(shipped()["lamb"], examples=1)
    target = Target("none", "kernel.c", _no_backend, _no_image)
    like = Experiment(lamb, target)._like
    assert like.keys() == lamb.variants
    adapted = {variant for variant in like if dict(variant)["SG_OPTION_adapt"]}
    for variant, other in like.items():
        one, two = dict(variant), dict(other)
        different = {macro for macro in one if one[macro] != two[macro]}
        # The kernel never mentions the first, and the other one where it doesn't adapt.
        assert different <= {"SG_OPTION_bias_correction", "SG_OPTION_trust_clip"}
        assert variant not in adapted or "SG_OPTION_trust_clip" not in different
    assert len(set(like.values())) < len(like) / 2


def _no_backend() -> NoReturn:
    raise AssertionError


def _no_image(text: str, defines: object) -> NoReturn:
    raise AssertionError


def test_the_lines_that_take_part() -> None:
    text = "\n".join(
        [
            "#if SG_PARAM == 1",  # 1
            "double",
            "#elif SG_PARAM >= 2 || SG_GRAD >= 2",  # 3
            "half",
            "#if !defined(SG_X) && (SG_GRAD == 3)",  # 5
            "half of half",
            "#else",  # 7
            "other half",
            "#endif",  # 9
            "#else",
            "float",  # 11
            "#endif",
            "always",  # 13
        ]
    )
    assert active_lines(text, {"SG_PARAM": 1, "SG_GRAD": 1}) == {1, 2, 3, 10, 12, 13}
    assert active_lines(text, {"SG_PARAM": 0, "SG_GRAD": 0}) == {1, 3, 10, 11, 12, 13}
    assert active_lines(text, {"SG_PARAM": 0, "SG_GRAD": 3}) == {1, 3, 4, 5, 6, 7, 9, 10, 12, 13}
    assert active_lines(text, {"SG_PARAM": 2, "SG_GRAD": 3, "SG_X": 0}) == {1, 3, 4, 5, 7, 8, 9, 10, 12, 13}


TRIALS = """
import json, os, signal, time
from solvergen.verify.mutations.isolation import each_isolated

said = []

def work(item, beat):
    if item == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    while item == "hang":
        beat("looping") if not said else None
        said.append(1)
    if item == "exit":
        os._exit(3)
    if item == "slow":
        for _ in range(8):
            time.sleep(0.5)
            beat("sleeping")
    if item == "raise":
        raise ValueError("of the trial's own")
    return item.upper()

for item, result, reason in each_isolated(work, ITEMS, jobs=2, patience=3):
    print(json.dumps([item, result, reason]), flush=True)
"""


def isolated(*items: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TRIALS.replace("ITEMS", repr(items))],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_trials_in_processes_of_their_own() -> None:
    run = isolated("fine", "crash", "hang", "exit", "slow")
    assert run.returncode == 0, run.stderr
    assert {tuple(map(str, json.loads(line))) for line in run.stdout.splitlines()} == {
        ("fine", "FINE", ""),
        ("crash", "None", "crashes (SIGSEGV)"),
        ("hang", "None", "looping: never ends"),
        ("exit", "None", "ends the process (status 3)"),
        ("slow", "SLOW", ""),
    }


def test_a_trial_that_fails_by_itself_is_no_finding() -> None:
    run = isolated("raise")
    assert run.returncode != 0
    assert "CompilerBug" in run.stderr
    assert "ValueError: of the trial's own" in run.stderr


def mutant(kind: str, number: int) -> Mutant:
    return Mutant("kernel.c", kind, number, "a", "b", 1, f"a{number}", 0)


def test_a_sample_has_every_kind_and_is_the_same_every_time() -> None:
    all_ = [mutant(kind, i) for kind in ("operator", "row") for i in range(50)]
    chosen = sample(all_, 3)
    assert [m.kind for m in chosen] == ["operator"] * 3 + ["row"] * 3
    assert sample(all_, 3) == chosen
    assert sample(all_, 3, seed=1) != chosen
    assert sample([m for m in all_ if m.kind == "row"], 3) == chosen[3:]  # kinds don't disturb one another
    assert sample(all_, None) == all_


def test_scores() -> None:
    verdicts = ["noticed"] * 6 + ["survived"] * 3 + ["same code", "refused"]
    outcomes = [Outcome(mutant("row", i), v, "", 1, 0.1) for i, v in enumerate(verdicts)]  # type: ignore[arg-type]
    score = Score.of(outcomes, {outcomes[6].mutant.key})
    assert score.noticed == 6
    assert [o.mutant.start for o in score.survivors] == [7, 8]
    assert score.share == 6 / 8
    assert score.rows() == [("row", "6", "2", "1", "1", "1")]
    assert Outcome.from_json(outcomes[0].as_json()) == outcomes[0]


@pytest.mark.skipif(why_unavailable("cpu") is not None, reason="no C compiler")
def test_steps_in_the_right_order_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs stages and passes in other orders does nothing else wrong: else each fault would show."""
    monkeypatch.setattr(KernelWorkspace, "run", KernelWorkspace.run)  # as it is afterwards
    steps._run(lambda: None)
    for name in ("lamb", "sm3"):
        disagreement = find_disagreement(shipped()[name], "cpu", examples=4)
        assert disagreement is None, disagreement.describe()
