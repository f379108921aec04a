"""The client of model servers: each way in which an answer can fail has its kind; nothing is sent twice unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from model_server import ModelServer, Say, message, model_servers

from kitchensync.storage.options.endpoint import (
    MAX_ANSWER_BYTES,
    Endpoint,
    NoAnswer,
    chat,
    chat_body,
    endpoint_of,
)

ASKED = [{"role": "user", "content": "hello"}]


@pytest.fixture
def play() -> Iterator[Callable[[Say], ModelServer]]:
    with model_servers("questions") as play:
        yield play


def at(server: ModelServer, **more: float) -> Endpoint:
    found = endpoint_of("questions", server.environment)
    assert found is not None
    return replace(found, **more)


def kind_of(endpoint: Endpoint) -> str:
    with pytest.raises(NoAnswer) as caught:
        chat(endpoint, chat_body(endpoint, ASKED), "nothing", {})
    return caught.value.kind


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ((500, b"oops"), "refused"),
        ((302, b""), "refused"),
        ((200, b"\x00 junk"), "unreadable"),
        ((200, message("x")[:-9]), "unreadable"),
        ((200, b'{"choices": [{"message": {"content": 7}}]}'), "unreadable"),
        ((200, b'{"choices": [{"message": {"content": null}}]}'), "unreadable"),
        ((200, b"[" * 100_000), "unreadable"),
        ((200, b" " * (MAX_ANSWER_BYTES + 1)), "too_long"),
        ((429, b""), "busy"),
    ],
)
def test_each_failure_has_its_kind(
    play: Callable[[Say], ModelServer], said: tuple[int, bytes], kind: str
) -> None:
    assert kind_of(at(play(lambda _: said))) == kind


def test_an_answer_that_breaks_off_or_does_not_come(play: Callable[[Say], ModelServer]) -> None:
    server = play(lambda _: (200, message("all of it")))
    endpoint = at(server)
    assert chat(endpoint, chat_body(endpoint, ASKED), "nothing", {})[0] == "all of it"
    server.lacking = 9
    assert kind_of(endpoint) == "unreadable"
    server.lacking, server.after_s = 0, 0.5
    assert kind_of(replace(endpoint, timeout_s=0.1)) == "timed_out"
    assert kind_of(Endpoint("http://127.0.0.1:9", "m")) == "unreachable"
    assert kind_of(Endpoint("http://[bad", "m")) == "unreachable"


def test_a_busy_server_is_asked_again_when_it_said(play: Callable[[Say], ModelServer]) -> None:
    server = play(lambda _: (200, message("now")) if len(server.asked) == 3 else (429, b""))
    server.headers = {"Retry-After": "0"}
    endpoint = at(server, tries=2)
    assert kind_of(endpoint) == "busy"
    assert len(server.asked) == 2
    assert chat(endpoint, chat_body(endpoint, ASKED), "nothing", {})[0] == "now"


def test_a_key_goes_over_no_network_in_the_clear() -> None:
    named = {
        "KITCHENSYNC_QUESTIONS_URL": "http://models.example/v1",
        "KITCHENSYNC_QUESTIONS_MODEL": "m",
        "KITCHENSYNC_QUESTIONS_KEY_ENV": "MY_KEY",
    }
    assert endpoint_of("questions", named) is not None
    with pytest.raises(ValueError, match="https"):
        endpoint_of("questions", named | {"MY_KEY": "not-a-secret"})
    safe = named | {"MY_KEY": "not-a-secret", "KITCHENSYNC_QUESTIONS_URL": "https://models.example/v1"}
    found = endpoint_of("questions", safe)
    assert found is not None
    assert "not-a-secret" not in repr(found)


@pytest.mark.slow
def test_an_answer_in_drops_ends_in_time(play: Callable[[Say], ModelServer]) -> None:
    server = play(lambda _: (200, message("x" * 10)))
    server.drop_s = 0.05
    assert kind_of(at(server, timeout_s=0.3)) == "timed_out"
