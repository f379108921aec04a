"""Serve one client: send packets when they are due, apply faults, record what was sent."""

import contextlib
import socket
import struct
import time
from dataclasses import replace
from math import inf

import numpy as np

from kitchensync.virtual_kitchen.faults import SLOW_HZ, Fault
from kitchensync.virtual_kitchen.headset.blind import SensorFaults
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.hostile import HOSTILE, HostileLink, play
from kitchensync.virtual_kitchen.headset.stream import Feed, SentPacket
from kitchensync.virtual_kitchen.truth import StreamTruth
from kitchensync.virtual_kitchen.world.seeds import generator

SOURCE_QUEUE_S = 2.0  # data the device buffers for a slow client before it drops frames
TOGETHER_BYTES = 64 << 10  # small packets joined into one send, when unthrottled
GARBAGE_SIZE = 0xFFFF_FFF0  # nearly 4 GiB: a client must not make room for it
_LEAVE_S = 20.0  # time for a client to notice garbage and leave
_DRIP_PIECES, _DRIP_SHARE = 12, 0.6


class Sending:
    """Sends one feed to one client; `killed` is set when the port must refuse from now on."""

    def __init__(
        self, headset: HeadsetState, name: str, truth: StreamTruth, client: socket.socket, connection: int
    ) -> None:
        self._headset, self._name, self._truth = headset, name, truth
        self._client, self._connection = client, connection
        self._blocked_s = 0.0  # time spent waiting for the client since the stream was last on schedule
        self._same_ticks: int | None = None
        self._sensor_faults = SensorFaults(headset.faults, name)
        self.killed = False
        self.next_s = 0.0

    def run(self, feed: Feed, from_s: float) -> None:
        """Send all packets from world time `from_s` on, until the end, a fault, or until the client leaves."""
        headset, faults, end_s = self._headset, self._headset.faults, self._headset.end_world_s
        k = feed.first_k(from_s)
        faults.resumed(self._name, feed.due_s(k))
        if headset.is_unthrottled and not faults.faults:
            self._run_flat_out(feed, k)
            return
        while end_s is None or feed.due_s(k) <= end_s:
            due_s = feed.due_s(k)
            if self._skipped(feed, k):
                k += 1
                continue
            packet, fault = self._faulty(feed.packet(k), k, due_s)
            delay = faults.held_until(self._name, due_s)
            if not headset.wait_until(delay[0] if delay else due_s):
                return
            if cut := faults.cut_due(self._name, due_s):
                self._cut(cut, packet)
                return
            self._note_lateness(delay[0] if delay else due_s)
            self._truth.scheduled += 1
            drip = faults.active("slow_drip", self._name, due_s)
            blocked_s = self._drip(packet, feed, k) if drip else send(self._client, packet)
            fault = fault or (delay[1] if delay else "slow_drip" if drip else None)
            self._truth.sent(k, packet.ticks, packet.payload, self._connection, fault, packet.sha256)
            k = self._after(feed, k, blocked_s)
            self.next_s = feed.due_s(k)
        self.next_s = feed.due_s(k)
        headset.wait_for_end()

    def _note_lateness(self, due_s: float) -> None:
        """Record how late a packet leaves; unthrottled packets are never late."""
        if not self._headset.is_unthrottled:
            behind_s = (self._headset.now_s() - due_s) / self._headset.kitchen.speed
            self._truth.most_behind_s = max(self._truth.most_behind_s, behind_s)

    def _run_flat_out(self, feed: Feed, k: int) -> None:
        """Send as fast as the client reads, joining small packets; faults and schedule do not apply."""
        headset, truth = self._headset, self._truth
        end_s = inf if headset.end_world_s is None else headset.end_world_s
        self.next_s = feed.due_s(k)
        while self.next_s <= end_s and not headset.stopping.is_set():
            packets, frames, size = [], [], 0
            while self.next_s <= end_s and size < TOGETHER_BYTES:
                packet = feed.packet(k)
                packets.append((k, packet))
                frames.append(packet.frame())
                size += len(frames[-1])
                k += 1
                self.next_s = feed.due_s(k)
            truth.scheduled += len(packets)
            self._client.sendall(b"".join(frames) if len(frames) > 1 else frames[0])
            for number, packet in packets:
                truth.sent(number, packet.ticks, packet.payload, self._connection, None, packet.sha256)
        headset.wait_for_end()

    def _skipped(self, feed: Feed, k: int) -> bool:
        """Return whether a slowed device does not capture frame k: this is not a loss."""
        slow = self._headset.faults.active("depth_rate_drop", self._name, feed.due_s(k))
        if slow is None:
            return False
        every = max(1, round(1 / SLOW_HZ / (feed.due_s(k + 1) - feed.due_s(k))))
        return k % every != 0

    def _faulty(self, packet: SentPacket, k: int, due_s: float) -> tuple[SentPacket, str | None]:
        """Apply faults to stamp and payload; return the packet and the fault's name."""
        faults, fault = self._headset.faults, None
        if jump := faults.active("time_jump", self._name, due_s):
            packet = replace(packet, ticks=packet.ticks + round(jump.jump_s * 1e7))
            fault = jump.name
        if faults.active("duplicate_stamps", self._name, due_s):
            self._same_ticks = packet.ticks if self._same_ticks is None else self._same_ticks
            packet, fault = replace(packet, ticks=self._same_ticks), "duplicate_stamps"
        else:
            self._same_ticks = None
        if faults.active("garbage_payload", self._name, due_s):
            rng = generator(self._headset.kitchen.seed, "garbage " + self._name, k)
            garbage = rng.integers(0, 256, len(packet.payload), np.uint8).tobytes()
            packet, fault = replace(packet, payload=garbage, sha256=""), "garbage_payload"
        if spoiled := self._sensor_faults.spoil(packet, due_s):
            packet, fault = spoiled
        return packet, fault

    def _cut(self, cut: Fault, packet: SentPacket) -> None:
        frame = packet.frame()
        if cut.name == "half_packet":
            self._client.sendall(frame[: max(1, len(frame) // 2)])
        elif cut.name == "garbage_size":
            self._client.sendall(struct.pack("<QI", packet.ticks, GARBAGE_SIZE) + frame[12:])
            self._client.settimeout(_LEAVE_S)
            with contextlib.suppress(OSError):  # the client reset the connection, or did not leave in time
                while self._client.recv(4096):
                    pass
        elif cut.name in HOSTILE:
            play(cut.name, HostileLink(self._client, frame, self._headset.stopping))
        self.killed = cut.name == "kill_port"

    def _drip(self, packet: SentPacket, feed: Feed, k: int) -> float:
        """Send a packet in small pieces over most of its period."""
        frame = packet.frame()
        step = max(1, -(-len(frame) // _DRIP_PIECES))
        pause_s = (feed.due_s(k + 1) - feed.due_s(k)) * _DRIP_SHARE / _DRIP_PIECES
        for start in range(0, len(frame), step):
            self._client.sendall(frame[start : start + step])
            self._headset.stopping.wait(pause_s)
        return 0.0

    def _after(self, feed: Feed, k: int, blocked_s: float) -> int:
        """Return the next packet to send, or a later one if the client blocked the device for too long.

        If the device itself is late (a busy computer), it sends everything, late.
        """
        if self._headset.is_unthrottled:
            return k + 1
        now_s, speed = self._headset.now_s(), self._headset.kitchen.speed
        late_s = (now_s - feed.due_s(k + 1)) / speed
        self._blocked_s = self._blocked_s + blocked_s if late_s > 0 else 0.0
        if late_s < SOURCE_QUEUE_S or self._blocked_s < late_s / 2:
            return k + 1
        k_next = max(k + 1, feed.first_k(now_s))
        self._truth.scheduled += k_next - (k + 1)
        self._truth.dropped_by_backpressure += k_next - (k + 1)
        self._blocked_s = 0.0
        return k_next


def send(client: socket.socket, packet: SentPacket) -> float:
    """Send one whole packet; return the seconds spent waiting for the client (0.0 if the buffer took it all)."""
    frame = memoryview(packet.frame())
    try:
        taken = client.send(frame, socket.MSG_DONTWAIT)
    except BlockingIOError:
        taken = 0
    if taken == len(frame):
        return 0.0
    before_ns = time.monotonic_ns()
    client.sendall(frame[taken:])
    return (time.monotonic_ns() - before_ns) / 1e9
