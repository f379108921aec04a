"""Remote configuration, with a server after the command table of the specification."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from kitchensync.sensors.errors import (
    PvNotStarted,
    StreamClosed,
    StreamRefused,
    StreamStalled,
    UnsupportedServer,
)
from kitchensync.sensors.hololens import remote
from kitchensync.sensors.hololens.remote import (
    RemoteControl,
    parse_version,
    require_version,
    start_pv,
    stop_pv,
)

Headset = Callable[[dict[int, Callable[[socket.socket], None]]], AbstractContextManager[str]]


class Device:
    """The state behind ports 3809 and 3810; the camera is on `delay` polls after its start."""

    def __init__(self, delay: int = 2, works: bool = True) -> None:
        self.on, self.pending, self.delay, self.works = False, -1, delay, works
        self.pv_messages: list[bytes] = []

    def remote(self, sock: socket.socket) -> None:
        while command := sock.recv(1):
            if command == b"\x00":
                sock.sendall(bytes.fromhex("01 00 00 00 25 00 00 00"))
            elif command == b"\x01":
                sock.sendall(bytes.fromhex("0b aa a9 fe 40 9f db 01"))
            elif command == b"\x03":
                sock.sendall(bytes([self.camera()]))
            elif command == b"\x18":
                source = struct.unpack("<I", sock.recv(4))[0]
                sock.sendall(struct.pack("<Q", (123456789012, 133875838893605919)[source]))
            else:
                return

    def camera(self) -> int:
        if self.pending >= 0:
            self.pending -= 1
            self.on = self.pending < 0
        return int(self.on)

    def pv(self, sock: socket.socket) -> None:
        message = b""
        while part := sock.recv(100):
            message += part
        self.pv_messages.append(message)
        if message == b"\x0b":
            self.on = False
        elif message[:1] == b"\x07" and len(message) == 28 and self.works:
            self.pending = self.delay

    @property
    def scripts(self) -> dict[int, Callable[[socket.socket], None]]:
        return {3809: self.remote, 3810: self.pv}


def test_a_headset_is_virtual_only_if_the_simulator_announces_it(headset: Headset) -> None:
    with headset(Device().scripts) as host:
        assert not remote.is_virtual(host)  # it answers like a real one
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as name_socket:
            name_socket.bind(f"\0kitchensync-virtual-headset/{host}")
            assert remote.is_virtual(host)
        assert not remote.is_virtual(host)
    assert not remote.is_virtual("no-such-host.invalid")


def test_version_offset_and_time(headset: Headset) -> None:
    with headset(Device().scripts) as host, RemoteControl(host) as remote:
        assert remote.version() == (1, 0, 37, 0)
        assert remote.utc_offset() == 133875715436816907
        before = time.monotonic_ns()
        exchange = remote.clock_exchange(with_utc=True)
        assert before <= exchange.host_send_ns <= exchange.host_receive_ns <= time.monotonic_ns()
        assert exchange.device_ticks == 123456789012
        assert exchange.utc_filetime == exchange.device_ticks + remote.utc_offset()
        assert remote.clock_exchange().utc_filetime is None
        assert not remote.pv_is_on()


def test_camera_on_and_off(headset: Headset) -> None:
    device = Device()
    with headset(device.scripts) as host:
        start_pv(host)
        assert device.on
        start_pv(host)  # the camera was left on, so it is closed first
        stop_pv(host)
        assert not device.on
    assert [message[0] for message in device.pv_messages] == [7, 11, 7, 11]


def test_camera_that_never_comes_on(headset: Headset) -> None:
    with (
        headset(Device(works=False).scripts) as host,
        pytest.raises(PvNotStarted, match="not on after 0.3 s"),
    ):
        start_pv(host, timeout_s=0.3)


def test_remote_states(headset: Headset, loopback_host: str) -> None:
    with pytest.raises(StreamRefused, match=r"3809 \(remote_configuration\)"), RemoteControl(loopback_host):
        pass
    with headset({3809: lambda sock: sock.sendall(sock.recv(1) * 2)}) as host, RemoteControl(host) as remote:
        with pytest.raises(StreamClosed) as closed:
            remote.version()
        assert not closed.value.at_boundary
    release = threading.Event()
    with headset({3809: lambda sock: (release.wait(60), None)[1]}) as host:
        with RemoteControl(host, timeout_s=0.2) as remote, pytest.raises(StreamStalled):
            remote.version()
        release.set()


def test_version_rule() -> None:
    assert require_version((1, 0, 37, 0)) is None
    assert "newer" in (require_version((1, 0, 38, 0)) or "")
    assert "newer" in (require_version((2, 0, 0, 0)) or "")
    for old in ((1, 0, 36, 9), (0, 9, 99, 0)):
        with pytest.raises(UnsupportedServer, match="--accept-version"):
            require_version(old)
    assert require_version((1, 0, 36, 0), "1.0.36") is None
    assert require_version((9, 1, 2, 3), (9, 1, 2)) is None
    with pytest.raises(UnsupportedServer, match=r"1\.0\.37 is not the accepted 1\.0\.36"):
        require_version((1, 0, 37, 0), "1.0.36")
    assert parse_version("1.0.37") == (1, 0, 37)
    for wrong in ("1.0", "1.0.x", "1.0.37.0", ""):
        with pytest.raises(ValueError, match=r"A\.B\.C"):
            parse_version(wrong)


def test_a_connection_that_is_dropped_is_a_stream_error(loopback_host, monkeypatch):
    """Any other error would end the front camera's stream for the whole recording."""
    monkeypatch.setattr(remote, "STOP_PV", bytes(64 << 20))  # so much that the drop comes while it is sent

    def drop() -> None:
        connection, _ = listener.accept()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    with socket.create_server((loopback_host, 3810)) as listener:
        dropper = threading.Thread(target=drop)
        dropper.start()
        with pytest.raises(StreamClosed, match=r"pv\): closed"):
            stop_pv(loopback_host, timeout_s=60)
        dropper.join()
