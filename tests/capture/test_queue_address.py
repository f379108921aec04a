"""Allowed queue addresses: on this computer, or with TLS and a password."""

from __future__ import annotations

import pytest

from kitchensync.capture.errors import BadQueueAddress, without_password
from kitchensync.capture.rig.rig_file import check_address


@pytest.mark.parametrize(
    "url",
    [
        "unix:///run/valkey/socket",
        "redis://127.0.0.1:6379/0",
        "redis://localhost",
        "redis://[::1]:6379",
        "rediss://cook:secret@queue.lab:6380/1",
        "rediss://queue.lab:6380?username=cook&password=secret",
    ],
)
def test_addresses_that_are_accepted(url):
    assert check_address(url) == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://queue.lab:6379", "needs TLS and a user"),
        ("redis://cook:secret@192.168.1.9", "needs TLS and a user"),
        ("rediss://queue.lab", "needs TLS and a user"),
        ("rediss://:secret@queue.lab", "needs TLS and a user"),
        ("http://127.0.0.1", "is no address"),
        ("127.0.0.1:6379", "is no address"),
        ("redis://127.0.0.1:port", "is no address"),
        ("unix://", "is no address"),
    ],
)
def test_addresses_that_are_refused(url, message):
    with pytest.raises(BadQueueAddress, match=message) as caught:
        check_address(url)
    assert "secret" not in str(caught.value)


def test_addresses_are_shown_without_passwords():
    assert without_password("rediss://cook:p@ss@queue.lab:1/2?password=x") == "rediss://queue.lab:1/2"
    assert without_password("unix:///tmp/a@b/queue") == "unix:///tmp/a@b/queue"
    assert without_password("ks:{u:hololens/pv}:packets") == "ks:{u:hololens/pv}:packets"
