from __future__ import annotations

import threading
from functools import partial

import pytest

from contracts.errors import Refusal
from rknn_tts.background import Background, beside_each_other, each_beside_the_others

LONG_S = 10.0


def test_background_gives_the_result_when_asked() -> None:
    assert Background(lambda: 42).result() == 42


def test_peek_does_not_wait() -> None:
    go_on = threading.Event()
    work = Background(lambda: go_on.wait(LONG_S))
    assert work.peek() is None
    go_on.set()
    assert work.result() is True
    assert work.peek() is True


@pytest.mark.parametrize("error", [Refusal("no voice"), ValueError("a bug"), KeyboardInterrupt()])
def test_background_raises_what_the_work_raised(error: BaseException) -> None:
    def fail() -> None:
        raise error

    work = Background(fail)
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            work.result()
        assert caught.value is error
    with pytest.raises(type(error)):
        work.peek()


def test_background_runs_beside_its_caller() -> None:
    here, there = threading.Event(), threading.Event()

    def work() -> bool:
        there.set()
        return here.wait(LONG_S)

    beside = Background(work)
    assert there.wait(LONG_S)
    here.set()
    assert beside.result() is True


def test_works_run_two_at_a_time_and_keep_their_order() -> None:
    meet = threading.Barrier(2)

    def work(number: int) -> int:
        meet.wait(LONG_S)
        return number

    assert beside_each_other([partial(work, number) for number in range(4)]) == [0, 1, 2, 3]
    assert beside_each_other([]) == []


def test_the_first_work_that_fails_is_told() -> None:
    with pytest.raises(ZeroDivisionError):
        beside_each_other([lambda: 1, lambda: 1 // 0, lambda: 2])


def test_what_each_key_gives_is_found_by_it() -> None:
    assert each_beside_the_others("abc", str.upper) == {"a": "A", "b": "B", "c": "C"}
