"""What is interrupted, shared, copied or closed: no answer of one request is ever taken for that of another."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator

import gymnasium
import pytest

from rewright.env.environment import HloRewrite
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from tests.env.modules import LOOP, RATES


def _forget(session: Session) -> None:
    session._known.clear()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Ctrl-C counts, also where a shell ignores it for what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _interrupted(call: Callable[[], object], after: float) -> bool:
    """Whether Ctrl-C, so many seconds later, interrupts a call."""
    kick = threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT))
    kick.start()
    try:
        call()
        time.sleep(after + 0.2)
    except KeyboardInterrupt:
        return True
    finally:
        kick.join()
    return False


def test_after_an_interrupt_answers_are_those_of_their_requests(xla: Session) -> None:
    module = xla.parse(RATES)
    _forget(xla)
    expected = xla.fingerprint(module)
    assert _interrupted(lambda: [xla.worker.call("trace", module.proto, "", ".*") for _ in range(2000)], 0.05)
    _forget(xla)
    assert xla.fingerprint(module) == expected
    assert xla.text(module).startswith("HloModule")


def test_an_answer_with_another_number_is_an_error(xla: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    module = xla.parse(RATES)

    def another(process: object, seconds: float) -> tuple[int, str, object]:
        return -1, "done", "an answer to something else"

    monkeypatch.setattr(xla.worker, "_answer", another)
    with pytest.raises(RewrightError, match="answered another request than text"):
        xla.text(module)
    monkeypatch.undo()
    assert xla.text(module).startswith("HloModule")


def test_threads_take_turns(xla: Session) -> None:
    modules = [xla.parse(source) for source in (RATES, LOOP)]
    expected = [xla.fingerprint(module) for module in modules]
    wrong: list[object] = []

    def ask(module: HloModule, fingerprint: str) -> None:
        for _ in range(20):
            _forget(xla)
            if (found := xla.fingerprint(module)) != fingerprint:
                wrong.append(found)

    threads = [threading.Thread(target=ask, args=own) for own in zip(modules, expected, strict=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_a_closed_session_stays_closed() -> None:
    session = Session()
    session.close()
    with pytest.raises(RewrightError, match="the session was closed; make a new one"):
        session.parse(RATES)
    assert session.worker.started == 0


def test_a_closed_environment_stays_closed(xla: Session) -> None:
    env = HloRewrite(RATES, session=xla)
    env.reset(seed=0)
    env.close()
    for use in (env.reset, lambda: env.step(0), lambda: env.episode):
        with pytest.raises(RewrightError, match="the environment was closed; make another one"):
            use()
    assert xla.fingerprint(xla.parse(RATES))  # the session is not the environment's own


def test_environments_are_copied_by_reference_to_their_process(xla: Session) -> None:
    env = HloRewrite(RATES, session=xla, tested=False)
    env.reset(seed=0)
    other = copy.deepcopy(env)
    other.step(int(other.action_masks().argmax()))
    assert other.episode.chosen
    assert not env.episode.chosen
    assert other.session is env.session
    assert copy.deepcopy(env.episode).run is env.episode.run


@pytest.mark.parametrize("what", ["session", "environment", "episode"])
def test_what_cannot_be_pickled_says_what_to_do(xla: Session, what: str) -> None:
    env = HloRewrite(RATES, session=xla, tested=False)
    env.reset(seed=0)
    subject: dict[str, object] = {"session": xla, "environment": env, "episode": env.episode}
    with pytest.raises(TypeError, match=r"cannot be pickled; send .*; to branch off in one process, use .*fork"):
        pickle.dumps(subject[what])


def test_a_registered_environment_is_copied(xla: Session) -> None:
    env = gymnasium.make("rewright/HloRewrite-v0", hlo=RATES, session=xla, tested=False)
    env.reset(seed=0)
    assert isinstance(copy.deepcopy(env).unwrapped, HloRewrite)
