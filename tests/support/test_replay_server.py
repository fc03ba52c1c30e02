"""The replay server: recorded bytes out, requests kept, and an end that says so."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request

import pytest
from replay_server import Asked, Recorded, ReplayServer


def post(url: str, body: object) -> tuple[str, bytes]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"x-key": "k"})
    with urllib.request.urlopen(request) as response:
        return response.headers["content-type"], response.read()


def test_responses_come_in_order_to_the_byte() -> None:
    events = b': note\n\ndata: {"a":1}\n\ndata: \xc3\xa9\r\n\r\ndata: [DONE]\n\n'
    with ReplayServer([events, b'{"b": 2}'], pace=0.001) as server:
        assert post(server.url + "/chat", {"n": 1}) == ("text/event-stream", events)
        assert post(server.url + "/chat", {"n": 2}) == ("application/json", b'{"b": 2}')
    asked = [Asked(a.path, {"x-key": a.headers["x-key"]}, a.body) for a in server.requests]
    assert asked == [Asked("/v1/chat", {"x-key": "k"}, {"n": n}) for n in (1, 2)]


def test_status_and_headers_of_a_recording() -> None:
    recorded = Recorded(b'{"error": {}}', 429, {"retry-after": "3"})
    with ReplayServer([recorded]) as server, pytest.raises(urllib.error.HTTPError) as caught:
        post(server.url, {})
    with caught.value as error:
        assert (error.code, error.headers["retry-after"], error.read()) == (429, "3", b'{"error": {}}')


def test_the_end_of_the_recording_is_an_error_that_says_so() -> None:
    with ReplayServer([]) as server, pytest.raises(urllib.error.HTTPError) as caught:
        post(server.url, {})
    with caught.value as error:
        assert json.load(error)["error"]["message"] == "the recording holds 0 responses, this is request 1"


def test_proxies_are_left_out_only_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    monkeypatch.delenv("no_proxy", raising=False)
    with ReplayServer([]):
        assert (os.environ["NO_PROXY"], os.environ["no_proxy"]) == ("example.org,127.0.0.1", "127.0.0.1")
    assert os.environ["NO_PROXY"] == "example.org"
    assert "no_proxy" not in os.environ
