from __future__ import annotations

import time

import numpy as np

from solvergen.bench.result import LIMIT, measured
from solvergen.bench.sizes import Size
from solvergen.bench.timing import WARM_UP, Contender, Schedule, interleave, schedule_for

SIZE = Size(2, 3, "2x3")


def test_contenders_take_turns_and_get_new_gradients():
    log: list[str] = []
    seen: list[object] = []

    def contender(name: str) -> Contender:
        def receive(gradients):
            assert [g.tolist() for g in gradients] == [[1.0, 2.0, 3.0]] * 2
            seen.extend(gradients)
            for gradient in gradients:
                gradient[:] = -1  # spoils nobody else's
            return name

        return Contender(name, lambda received: log.append(received), receive)

    rounds: list[tuple[int, int]] = []
    times = interleave(
        {name: contender(name) for name in "abc"},
        SIZE,
        Schedule(rounds=4, steps=2),
        lambda: [np.array([1.0, 2.0, 3.0])] * 2,
        lambda done, total: rounds.append((done, total)),
    )
    assert "".join(log) == "aabbccbbccaa" + "ccaabbaabbccbbccaaccaabb"
    assert {name: values.shape for name, values in times.items()} == dict.fromkeys("abc", (4, 2))
    assert len({id(array) for array in seen}) == len(seen)
    assert rounds == [(n, WARM_UP + 4) for n in range(WARM_UP + 5)]


def test_only_the_step_is_timed():
    def slow(gradients):
        time.sleep(0.02)
        return gradients

    times = interleave(
        {"a": Contender("a", lambda _: None, slow), "b": Contender("b", slow, lambda g: g)},
        SIZE,
        Schedule(rounds=1, steps=3),
        lambda: [np.zeros(3)],
    )
    assert times["a"].min() < 0.02 <= times["b"].min()


def test_ratios_are_medians_of_what_a_round_shows():
    times = {
        LIMIT: np.array([[1.0], [10.0], [2.0]]),
        "cpu": np.array([[1.5], [12.0], [2.2]]),
        "rival": np.array([[6.0], [3.0], [4.4]]),
    }
    limit, ours, rival = measured(times, "cpu")
    assert (limit.median_ms, limit.fastest_ms) == (2000.0, 1000.0)
    # 1.5, 1.2, 1.1 and 6, 0.3, 2.2; a round that is ten times slower for all changes nothing.
    assert np.isclose(ours.to_limit, 1.2)
    assert ours.to_ours == limit.to_limit == 1.0
    assert np.isclose(rival.to_limit, 2.2)
    assert np.isclose(rival.to_ours, 2.0)


def test_without_a_limit_there_is_no_ratio_to_it():
    (only,) = measured({"numpy": np.array([[1.0, 3.0]])}, "numpy")
    assert (only.to_limit, only.to_ours, only.median_ms) == (None, 1.0, 2000.0)


def test_more_work_has_fewer_rounds():
    small, large = schedule_for(Size(1, 1000, "")), schedule_for(Size(50, 1 << 20, ""))
    assert small.rounds * small.steps > large.rounds * large.steps
    assert schedule_for(Size(1, 1000, ""), 1e-9).rounds == 3
