"""verify notices what is wrong: generated packages with one deliberate fault each, and a faulty runtime."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from solvergen.errors import AgreementError, BackendUnavailable, VerificationError
from solvergen.runtime.backends.cpu import CpuBackend
from solvergen.runtime.backends.numpy import NumpyBackend, NumpyLauncher
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify import (
    Limits,
    Progress,
    check_agreement,
    find_disagreement,
    optimizers_in,
    select,
    shipped,
    verify_all,
    why_unavailable,
)
from solvergen.verify.collect import built_from
from solvergen.verify.fuzzing import check_meaning
from solvergen.verify.static import check_static, static_report
from tests.unit.verify.support import SPECS, faulty, place_of

KERNEL_FAULTS = {
    "an operation": ("adam", r"beta1 \* exp_avg \+", "beta1 * exp_avg -", "exp_avg"),
    "another grouping": (
        "adam",
        r"one_minus_beta2 \* \(g_next \* g_next\)",
        "one_minus_beta2 * g_next * g_next",
        "exp_avg_sq",
    ),
    "contraction": (
        "adam",
        r"beta1 \* exp_avg \+ one_minus_beta1 \* g_next",
        "(sg_real)__builtin_fma((double)beta1, (double)exp_avg, (double)(one_minus_beta1 * g_next))",
        "exp_avg",
    ),
    "a scalar computed in the element's type": (
        "adam",
        r"const sg_real one_minus_beta2 = sg_row\[\d+\]",
        "const sg_real one_minus_beta2 = (sg_real)1.0 - sg_row[4]",
        "exp_avg_sq",
    ),
    "a tail that is left out": (
        "lion",
        r"sg_i < sg_count;",
        "sg_i < sg_count - (sg_count % 8 == 7);",
        None,
    ),
    "a sign of zero": ("sgd", r"const sg_real g = -grad;", "const sg_real g = (sg_real)0.0 - grad;", None),
    "a maximum that forgets NaN": (
        "adam",
        r"sg_max\(max_exp_avg_sq, exp_avg_sq_new\)",
        "(max_exp_avg_sq > exp_avg_sq_new ? max_exp_avg_sq : exp_avg_sq_new)",
        "max_exp_avg_sq",
    ),
    "a store that is missing": (
        "adam",
        r"sg_state_store\(sg_exp_avg_at, sg_i, exp_avg_new\);",
        "",
        "exp_avg",
    ),
    "ties away from even in bfloat16": (
        "caffe_sgd",
        r"0x7fffu \+ \(\(bits >> 16\) & 1u\)",
        "0x8000u",
        "param",
    ),
    "subnormals of float16 flushed": (
        "caffe_sgd",
        r"magnitude < 0x38800000u \? tiny : normal",
        "magnitude < 0x38800000u ? 0u : normal",
        "param",
    ),
    "a parameter rounded once too late": (
        "sgd",
        r"sg_param_store\(sg_param_at, sg_i, param_new\);",
        "sg_param_store(sg_param_at, sg_i, param_new + (sg_real)1.0 - (sg_real)1.0);",
        "param",
    ),
    "the row of another tensor": (
        "adam",
        r"job->rows\[chunk->tensor\]",
        "job->rows[chunk->tensor > 0 ? chunk->tensor - 1 : 0]",
        None,
    ),
}


@pytest.mark.parametrize("fault", KERNEL_FAULTS)
def test_a_fault_in_the_cpu_kernel(fault: str) -> None:
    name, right, wrong, buffer = KERNEL_FAULTS[fault]
    with faulty(name, "kernel.c", right, wrong) as optimizer:
        found = find_disagreement(optimizer, "cpu")
    assert found is not None
    assert found.difference is not None
    if buffer is not None:
        assert found.difference.buffer == buffer
    # It was shrunk: one tensor with few elements, unless the fault needs more.
    if fault != "the row of another tensor":
        assert len(found.example.tensors) == 1
    assert sum(t.param.size for t in found.example.tensors) <= (7 if "left out" in fault else 2)
    assert len(found.example.steps) <= 2


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (r"    \(void\)sg_row;", "    sg_param_at[sg_count] = sg_param_at[0];", "wrote behind parameter w"),
        (r"    \(void\)sg_row;", "    sg_param_at[-1] = sg_param_at[0];", "wrote before parameter w"),
        (
            r"    \(void\)sg_row;",
            "    if (sg_count > 1) ((sg_grad *)sg_grad_at)[1] = sg_grad_at[0];",
            "wrote into the gradient of w",
        ),
    ],
)
def test_a_kernel_that_writes_where_it_must_not(right: str, wrong: str, message: str) -> None:
    with faulty("caffe_sgd", "kernel.c", right, wrong) as optimizer:
        found = find_disagreement(optimizer, "cpu", limits=Limits(tensors=1, elements=40))
    assert found is not None
    assert found.error is not None
    assert message in found.error


SCALAR_FAULTS = {
    "t off by one": ("adam", r"power\(beta2, t\)", "power(beta2, t - 1.0)"),
    "a power in float32": (
        "adam",
        r"power\(beta1, t\)",
        "float(__import__('numpy').float32(power(beta1, t)))",
    ),
    "a derived option": ("sgd", r"if use_momentum else 0\.0", "if not use_momentum else 0.0"),
    "a switch of decay": ("caffe_adam", r"weight_decay != 0\.0", "weight_decay > 0.5"),
}


@pytest.mark.parametrize("fault", SCALAR_FAULTS)
def test_a_fault_in_the_host_program(fault: str) -> None:
    with faulty(SCALAR_FAULTS[fault][0], "scalars.py", *SCALAR_FAULTS[fault][1:]) as optimizer:
        assert find_disagreement(optimizer, "cpu") is not None


def test_a_state_that_begins_wrong() -> None:
    class Off(NumpyBackend):
        def allocate(self, param: Any, init: Any, dtype: Any = None) -> Any:
            return super().allocate(param, -0.0 if init == 0.0 else init, dtype)

    found = find_disagreement(shipped()["lion"], Off())
    assert found is not None
    assert found.difference is not None
    assert (found.difference.step, found.difference.buffer) == (0, "exp_avg")
    assert found.difference.ulps == 0
    assert "signs of zero differ" in found.headline


def test_a_policy_that_overlooks_infinities() -> None:
    class Blind(NumpyBackend):
        def prepare(self, plan: Any) -> NumpyLauncher:
            launcher = super().prepare(plan)
            launcher.finite = lambda: True  # type: ignore[method-assign]
            return launcher

    found = find_disagreement(shipped()["caffe_sgd"], Blind())
    assert found is not None
    assert found.difference is not None
    assert found.difference.buffer == "outcome"
    assert found.difference.expected in ("skipped", "raised")


def test_an_optimizer_that_loses_count() -> None:
    class Forgetful(shipped()["adam"]):  # type: ignore[misc]
        definition = shipped()["adam"].definition

        def step(self, gradients: Any) -> bool:
            applied = super().step(gradients)
            for cohort in self._cohorts.all:
                cohort.t = int(np.float32(cohort.t))
            return applied

    found = find_disagreement(Forgetful, "numpy", examples=300)
    assert found is not None
    assert found.difference is not None
    assert found.difference.buffer == "t"
    assert found.difference.expected > 2**24


def test_a_backend_that_raises() -> None:
    class Refuses(NumpyBackend):
        def adopt(self, name: str, array: object) -> Any:
            adopted = super().adopt(name, array)
            if adopted.ndim == 0:
                raise ValueError("no dimensions")
            return adopted

    found = find_disagreement(shipped()["lion"], Refuses())
    assert found is not None
    assert found.error == "ValueError: no dimensions"
    assert [t.shape for t in found.example.tensors] == [()]
    assert "raises ValueError: no dimensions" in found.headline
    assert "ValueError: no dimensions" in found.describe()


def test_the_report_says_all_that_is_needed() -> None:
    with (
        faulty("adam", "kernel.c", *KERNEL_FAULTS["an operation"][1:3]) as optimizer,
        pytest.raises(AgreementError) as caught,
    ):
        check_agreement(optimizer, backends=("numpy", "cpu"), dtypes=[("float32", "bfloat16")])
    assert isinstance(caught.value, AssertionError)
    text = str(caught.value)
    assert "Adam (specs/adam.yaml) on backend cpu is not its rule" in text
    assert re.search(r"tensor w\d, buffer exp_avg, element \[", text)
    assert re.search(r"expected  \S+  -?0x\S+p[+-]\d+", text)
    assert re.search(r"found     \S+  -?0x\S+p[+-]\d+ \(\S+ ulp\)", text)
    assert re.search(r"step \d of \d", text)
    for name in ("lr=0.001", "beta1=", "eps=", "amsgrad=", "float32 (", "gradient bfloat16"):
        assert name in text
    json = caught.value.disagreement.as_json()  # type: ignore[attr-defined]
    assert json["difference"]["buffer"] == "exp_avg"
    assert text.startswith(json["report"])
    equation = "exp_avg = beta1*exp_avg + (1 - beta1)*g"
    assert f"equation  {equation}  ({place_of('adam', equation)})" in text
    assert re.search(r"solvergen verify --replay \S+adam-cpu-[0-9a-f]{12}\.json", text)


def test_what_is_right_passes() -> None:
    check_agreement(shipped()["lion"], examples=20)
    with built_from([SPECS / "lion.yaml"]) as optimizers:
        check_agreement(optimizers["lion"], backends=("cpu",), examples=20)


def test_a_seed_draws_other_examples() -> None:
    def sums(seed: int) -> list[bytes]:
        seen: list[bytes] = []

        class Watching(NumpyBackend):
            def adopt(self, name: str, array: Any) -> Any:
                seen.append(array.tobytes())
                return super().adopt(name, array)

        find_disagreement(shipped()["lion"], Watching(), examples=10, seed=seed)
        return seen

    assert sums(0) == sums(0)
    assert sums(1) != sums(2)


def test_a_matrix_of_optimizers_and_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    import solvergen.runtime.backends as backends

    create = backends.create

    def without_gpu(name: str) -> Any:
        if name == "cuda":
            raise BackendUnavailable("there is no GPU")
        return create(name)

    monkeypatch.setattr(backends, "create", without_gpu)
    seen: list[Progress] = []
    with faulty("adam", "kernel.c", *KERNEL_FAULTS["an operation"][1:3]) as adam:
        optimizers = {"adam": adam, **select(shipped(), ["lion"])}
        report = verify_all(optimizers, examples=15, progress=seen.append)
    outcomes = {(row.optimizer, row.backend): row.outcome for row in report.rows}
    assert outcomes == {
        ("adam", "numpy"): "passed",
        ("adam", "cpu"): "failed",
        ("adam", "ptx"): "passed",
        ("adam", "cuda"): "not run",
        ("lion", "numpy"): "passed",
        ("lion", "cpu"): "passed",
        ("lion", "ptx"): "passed",
        ("lion", "cuda"): "not run",
    }
    assert (report.ok, report.complete) == (False, False)
    rows = {(row.optimizer, row.backend): row for row in report.rows}
    assert rows["lion", "cpu"].examples == 15
    assert rows["lion", "cuda"].detail == "there is no GPU"
    assert "exp_avg of w0" in rows["adam", "cpu"].detail
    assert [row.backend for row in report.failures] == ["cpu"]
    # What isn't run is told at once, the others in their order.
    made = [p.row for p in seen if p.row is not None]
    assert [row.outcome for row in made[:2]] == ["not run", "not run"]
    assert made[2:] == [row for row in report.rows if row.outcome != "not run"]
    assert all(report.rows[p.position - 1] is p.row for p in seen if p.row is not None)
    assert {p.total for p in seen} == {8}
    json = report.as_json()
    assert json["ok"] is False
    assert json["rows"][1]["disagreement"]["difference"]["tensor"] == "w0"


def test_optimizers_by_name_or_in_a_list() -> None:
    lion, adam = shipped()["lion"], shipped()["adam"]
    report = verify_all([lion, adam], ["numpy"], examples=2)
    assert [row.optimizer for row in report.rows] == ["lion", "adam"]
    assert [row.optimizer for row in verify_all({"mine": lion}, ["numpy"], examples=2).rows] == ["mine"]


@pytest.mark.parametrize(
    ("optimizers", "message"),
    [
        (shipped()["lion"], "by name or in a list, not <class"),
        ("lion", "by name or in a list, not 'lion'"),
        (["lion"], "the class of a generated optimizer, not 'lion'"),
        ({"lion": int}, "the class of a generated optimizer, not <class 'int'>"),
        ([shipped()["lion"], shipped()["lion"]], "two optimizers named 'lion'"),
    ],
)
@pytest.mark.parametrize("function", [verify_all, static_report])
def test_what_is_no_optimizer(function: Callable[..., Any], optimizers: Any, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        function(optimizers)


def test_selecting_by_name_and_class() -> None:
    assert list(select(shipped(), [])) == list(shipped())
    assert list(select(shipped(), ["SGD", "adam"])) == ["adam", "sgd"]
    with pytest.raises(VerificationError, match="did you mean 'adam'"):
        select(shipped(), ["adaam"])


def test_backends_that_there_are_not() -> None:
    with pytest.raises(VerificationError, match="no backend 'gpu'"):
        check_agreement(shipped()["lion"], backends=("gpu",))
    with pytest.raises(VerificationError, match=r"backends=\('cpu',\), not the string"):
        check_agreement(shipped()["lion"], backends="cpu")
    with pytest.raises(VerificationError, match=r"backends=\('numpy', 'cpu'\), not"):
        check_agreement(shipped()["lion"], backends="numpy,cpu")
    assert why_unavailable("numpy") is None


@pytest.mark.parametrize("wrong", ["signum", None, 3, int])
def test_what_isnt_an_optimizer_class(wrong: Any) -> None:
    with pytest.raises(VerificationError, match="needs the class of a generated optimizer, not"):
        check_agreement(wrong, ("numpy",), examples=1)


def test_a_backend_asked_for_by_name_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: CpuBackend) -> None:
        raise BackendUnavailable("no compiler")

    monkeypatch.setattr(CpuBackend, "__init__", missing)
    with pytest.raises(VerificationError, match="backend cpu can't be verified here: no compiler"):
        check_agreement(shipped()["lion"], examples=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"backends": []}, "backends names none"),
        ({"backends": None}, "backends must be a sequence of names, not None"),
        ({"backends": [3]}, "3 is neither a backend nor the name of one"),
        ({"examples": 0}, "examples is a whole number, 1 or more, not 0"),
        ({"examples": 1.5}, "examples is a whole number"),
        ({"examples": "3"}, "examples is a whole number"),
        ({"dtypes": []}, "dtypes names no pair"),
        ({"dtypes": "float32"}, "dtypes are pairs"),
        ({"dtypes": ["float32"]}, "'float32' is no pair of dtypes"),
        ({"dtypes": [("float32", "float64")]}, "is no pair of dtypes"),
        ({"limits": 3}, "limits are solvergen.verify.Limits or None, not 3"),
        ({"limits": Limits(elements=-1)}, "limits.elements is a whole number"),
    ],
)
def test_a_check_that_cannot_be_made_or_would_look_at_nothing_is_refused(
    arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(VerificationError, match=re.escape(says)):
        check_agreement(shipped()["adam"], **{"backends": ["numpy"], "examples": 1, **arguments})


def test_what_is_not_a_generated_optimizer_or_package_is_refused() -> None:
    with pytest.raises(VerificationError, match="needs the class of a generated optimizer"):
        check_agreement(Optimizer, examples=1)
    with pytest.raises(VerificationError, match="is not a package that solvergen build wrote"):
        optimizers_in(np)
    with pytest.raises(VerificationError, match="needs a spec"), built_from([]):
        pass
    with pytest.raises(VerificationError, match="check_meaning needs the path of a spec"):
        check_meaning()
    with pytest.raises(VerificationError, match="check_meaning needs paths of specs, not 3"):
        check_meaning(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"parts": []}, "parts names none"),
        ({"parts": "cuda"}, "parts are a sequence of cuda and cpu"),
        ({"capabilities": []}, "capabilities names none"),
        ({"capabilities": 90}, "capabilities are numbers"),
        ({"dtypes": []}, "dtypes names no pair"),
        ({"dtypes": ["float32"]}, "'float32' is no pair of dtypes"),
    ],
)
def test_a_static_check_of_nothing_is_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(VerificationError, match=says):
        check_static(shipped()["sgd"], **arguments)
    with pytest.raises(VerificationError, match="check_static needs the class"):
        check_static(None, **arguments)  # type: ignore[arg-type]
