"""One run of the virtual kitchen: bind all ports, serve, and write the truth at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import cv2

from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.faults import DEVICE, Fault, FaultPlan, is_waiting
from kitchensync.virtual_kitchen.gopro.files.board_roll import roll_of
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount
from kitchensync.virtual_kitchen.gopro.server import VirtualGoPro
from kitchensync.virtual_kitchen.headset.client_configuration import VideoFormat
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.server import VirtualHeadset
from kitchensync.virtual_kitchen.headset.streams.pv_stream import eye, focal_px_of
from kitchensync.virtual_kitchen.kitchen import NS_PER_S, Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world import rotations
from kitchensync.virtual_kitchen.world.boards import BoardShow
from kitchensync.virtual_kitchen.world.frame_counter import ABOUT
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.replay import VIDEO_SUFFIXES, Replay, read_replay

ALONE_S = 10.0
"""Time without a client after which all are taken to have left, seconds; a busy client makes pauses."""
CLOSING_S = 5.0
"""Extra length of prepared camera video: a camera may record on after the headset's streams end, seconds."""
LATEST_S = 300.0
"""Longest wait for a client that never leaves, or never fetches a file, seconds."""
_TICK_S = 0.1
SETTLED_NS = 500_000_000
"""Time without a new stream before faults are armed: a recorder connects one stream after the other."""


def wait_for_clients(seen_ns: Callable[[], int], has_all: Callable[[], bool], stop: threading.Event) -> None:
    """Wait until clients have everything and have left (last `seen_ns`, host_ns), a stop request or LATEST_S."""
    begin_ns = time.monotonic_ns()
    while (now_ns := time.monotonic_ns()) - begin_ns < LATEST_S * NS_PER_S:
        alone_ns = now_ns - max(begin_ns, seen_ns())
        if alone_ns >= ALONE_S * NS_PER_S and has_all():
            return
        if stop.wait(_TICK_S):
            return


COOKING, BOARD = "cooking", "board"
_DRAWN_AT = VideoFormat(1280, 720, 30)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line; `seconds` None means until a signal."""

    seed: int
    out: Path
    seconds: float | None = None
    speed: float = 1.0
    rings: bool = False
    prepare: bool = False
    ring_store: Path | None = None
    hololens_host: str = "127.0.0.1"
    gopro_host: str = "127.0.0.1"
    gopro_ports: tuple[int, ...] = (8080,)
    gopro_model: str = "hero12"
    gopro_chapter_seconds: float | None = None
    gyroscope_unit: str = "deg_per_s"
    start_utc_ns: int | None = None
    replay: str | None = None
    shows_people: bool = False
    "Whether the replayed video shows people: then recordings of it are not marked as virtual."
    scene: str = COOKING
    frame_counter: bool = False
    faults: FaultPlan = field(default_factory=FaultPlan)


def run(options: Options) -> None:
    """Serve until a signal, or until the time is over and clients have left. Raises KitchenError."""
    cv2.setNumThreads(1)
    _check(options)
    kitchen, replay = _kitchen(options)
    unthrottled = options.speed == 0
    headset = HeadsetState(
        kitchen,
        options.faults,
        options.gyroscope_unit,
        options.seconds,
        has_rings=options.rings or unthrottled or options.ring_store is not None,
        is_unthrottled=unthrottled,
        ring_store=options.ring_store,
    )
    ports = VirtualHeadset(headset, options.hololens_host)
    ports.warm_up()
    cameras = _cameras(options, kitchen, replay)
    if options.prepare:
        assert options.seconds is not None
        ports.prepare(options.seconds)
        for camera in cameras:
            camera.prepare(options.seconds + CLOSING_S)
    with stop_on_signals() as stop:
        try:
            ports.bind()
            gopro_ports = [camera.start() for camera in cameras]
            ports.listen()
            _start_faults(headset, ports)
            print(f"ready gopro={','.join(map(str, gopro_ports))}", flush=True)
            if sys.stdout.isatty():
                print(f"in another terminal: {record_line(options, gopro_ports)}", file=sys.stderr)
            wait_for_end(headset, ports, cameras, stop)
        finally:
            ports.stop()
            for camera in cameras:
                camera.stop()
        _record_faults(headset)
        try:  # inside the handler: a second signal must not lose the truth
            kitchen.truth.write()
        except OSError as error:
            raise KitchenError(
                f"the truth could not be written to {options.out}: {error.strerror}"
            ) from error


def record_line(options: Options, gopro_ports: list[int]) -> str:
    """Return the command that records what is served."""
    cameras = [f"http://{options.gopro_host}:{port}" for port in gopro_ports]
    named = cameras if len(cameras) == 1 else [f"gopro-{k}={url}" for k, url in enumerate(cameras, start=1)]
    cameras_option = " ".join(f"--gopro {camera}" for camera in named)
    return f"kitchensync record take-1 --data data --hololens {options.hololens_host} {cameras_option}"


def _check(options: Options) -> None:
    """Raise KitchenError for options that exclude each other."""
    repeats = options.rings or options.ring_store is not None or options.speed == 0
    is_rendered = options.replay is None or not options.replay.lower().endswith(VIDEO_SUFFIXES)
    fixed = [port for port in options.gopro_ports if port]
    if len(fixed) > len(set(fixed)):
        raise KitchenError("--gopro-port has one port twice: give each camera its own, or 0 for a free one")
    if len(options.gopro_ports) > 1 and (options.scene == BOARD or not is_rendered):
        raise KitchenError("--scene board and a replayed video need a single camera: give one --gopro-port")
    if options.frame_counter and (repeats or options.scene == BOARD or not is_rendered):
        raise KitchenError(
            "--frame-counter needs newly rendered frames: leave out --rings, --ring-store, --speed 0, "
            "--scene board and a replayed video"
        )
    if options.prepare:
        _check_prepared(options, repeats=repeats)
    if options.scene == COOKING:
        return
    for name, is_set in (
        ("--replay", options.replay is not None),
        ("--rings", options.rings or options.ring_store is not None),
        ("--speed 0", options.speed == 0),
        ("--gopro-chapter-seconds", options.gopro_chapter_seconds is not None),
    ):
        if is_set:
            raise KitchenError(f"--scene board does not go with {name}: leave one of them out")


def _check_prepared(options: Options, *, repeats: bool) -> None:
    """Raise KitchenError if frames cannot be encoded in advance."""
    if options.seconds is None:
        raise KitchenError("--prepare needs --seconds: give the length of the recording")
    blackens = options.faults.has("black_pictures", "pv")
    if repeats or blackens or options.scene == BOARD or options.replay is not None:
        raise KitchenError(
            "--prepare does not go with --rings, --ring-store, --speed 0, --scene board, --replay and the fault "
            "black_pictures: leave one of them out"
        )


def _shown_board(seed: int) -> BoardShow:
    """Return the show of a cook who holds a calibration board; its video is already encoded."""
    turn = rotations.matrices(CameraMount.of_seed(seed).wxyz[None])[0]
    show = BoardShow(seed, turn, eye(_DRAWN_AT, focal_px_of(_DRAWN_AT)))
    print("encoding the video of the board ...", file=sys.stderr, flush=True)
    roll_of(show).warm_up()
    return show


def _kitchen(options: Options) -> tuple[Kitchen, Replay | None]:
    """Build the whole world, so that the first client does not wait."""
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        if options.ring_store is not None:
            options.ring_store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KitchenError(f"cannot create {options.out}: {error.strerror}") from error
    replay = read_replay(options.replay, options.seed) if options.replay else None
    motion = replay.motion if replay else simulated_motion(options.seed)
    kitchen = Kitchen(options.seed, motion, Truth(options.out, options.seed), options.speed or 1.0)
    if options.start_utc_ns is not None:
        kitchen.utc_minus_host_ns = options.start_utc_ns - time.monotonic_ns()
    assert kitchen.scene is not None
    if options.frame_counter:
        kitchen.frame_counter = True
        kitchen.truth.notes["frame_counter"] = ABOUT
    if options.scene == BOARD:
        kitchen.show = _shown_board(options.seed)
        kitchen.truth.notes["calibration"] = kitchen.show.truth()
    return kitchen, replay


def _cameras(options: Options, kitchen: Kitchen, replay: Replay | None) -> list[VirtualGoPro]:
    """Make a camera for each port. Several cameras get numbers; the first one has the faults."""
    cameras = []
    for number, port in enumerate(options.gopro_ports):
        gopro = VirtualGoPro(
            kitchen,
            options.gopro_host,
            port,
            options.gopro_model,
            replay.camera_file if replay else None,
            faults=options.faults.camera if number == 0 else None,
            chapter_s=options.gopro_chapter_seconds,
            name=number if len(options.gopro_ports) > 1 else "",
        )
        gopro.camera.shows_people = options.shows_people
        cameras.append(gopro)
    return cameras


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into an event; restore the old handlers at the end."""
    stop = threading.Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        start_new_thread(stop.set, ())  # the interrupted code may hold the lock of the event

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_end(
    headset: HeadsetState,
    ports: VirtualHeadset,
    cameras: Sequence[VirtualGoPro],
    stop: threading.Event,
) -> None:
    """Wait until the streams have ended and clients have everything and have left, or until a signal."""
    if headset.end_world_s is None:
        while not stop.wait(_TICK_S * 5):
            pass
        return
    kitchen = headset.kitchen
    while kitchen.world0_host_ns is None or headset.now_s() < headset.end_world_s:
        if headset.is_unthrottled and ports.all_sent:
            break
        left_s = (kitchen.host_ns_of(headset.end_world_s) - time.monotonic_ns()) / NS_PER_S
        if stop.wait(min(_TICK_S, max(left_s, 0.001))):
            return
    ports.end_streams()
    wait_for_clients(
        lambda: max([ports.client_seen_ns, *(camera.client_seen_ns for camera in cameras)]),
        lambda: all(camera.idle_and_fetched() for camera in cameras),
        stop,
    )


def _start_faults(headset: HeadsetState, ports: VirtualHeadset) -> None:
    """Arm waiting faults once all streams send; play a fault for each typed line `fault NAME:ARGS`."""
    threading.Thread(target=_arm_when_all_send, args=(headset, ports), name="arming", daemon=True).start()
    try:
        typed = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # standard input is closed or replaced
        return
    # With SIGTTIN ignored, reading a terminal from the background fails instead of stopping the process.
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    threading.Thread(target=_play_typed, args=(headset, typed), name="typed faults", daemon=True).start()


def _arm_when_all_send(headset: HeadsetState, ports: VirtualHeadset) -> None:
    """Wait until every connected stream has sent a packet and no other has connected for a moment."""
    sending, since_ns = 0, 0
    while headset.faults.has_waiting() and not headset.stopping.wait(_TICK_S):
        now_sending = ports.streams_sending
        if not now_sending or now_sending != sending:
            sending, since_ns = now_sending, time.monotonic_ns()
        elif time.monotonic_ns() - since_ns >= SETTLED_NS:
            headset.faults.arm(headset.now_s())


def _play_typed(headset: HeadsetState, typed: int) -> None:
    rest = b""
    with contextlib.suppress(OSError):
        while content := os.read(
            typed, 4096
        ):  # unbuffered: Python crashes at exit if a thread holds the buffer's lock
            *lines, rest = (rest + content).split(b"\n")
            now_s = headset.now_s()
            for line in lines:
                word, _, fault = line.decode(errors="replace").strip().partition(" ")
                try:
                    if word == "fault":
                        headset.faults.fire(fault.strip(), now_s)
                except KitchenError as error:
                    print(error, file=sys.stderr, flush=True)


def _record_faults(headset: HeadsetState) -> None:
    """Write the window of each armed fault; a fault without an end lasts until the streams end."""
    kitchen, end_s = headset.kitchen, headset.end_world_s
    last_s = headset.now_s() if end_s is None else min(end_s, headset.now_s())
    for fault in headset.faults.every():
        if is_waiting(fault):
            continue
        windows: dict[str, Any] = {}
        for edge, at_s in (("start", fault.start_s), ("end", last_s if fault.end_s is None else fault.end_s)):
            windows[f"{edge}_ticks"] = kitchen.headset_clock.ticks_at(at_s)
            windows[f"{edge}_host_ns"] = kitchen.host_ns_of(at_s)
        stream = fault.stream if isinstance(fault, Fault) else ""
        streams = [f"{DEVICE}/{stream}"] if stream else []
        kitchen.truth.add_fault({"name": fault.name, "streams": streams, **windows})
