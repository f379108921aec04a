"""The virtual GoPro without its network interface: shutter, states, files, truth."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.gopro.card import Card, CardFile, replayed_file, sha256_of
from kitchensync.virtual_kitchen.gopro.clips import FilmedClip, Phase, ReplayClip, WrongState
from kitchensync.virtual_kitchen.gopro.clock import WallClock
from kitchensync.virtual_kitchen.gopro.faults import CHANGES, SELF_ENDING, CameraFault, CameraFaults
from kitchensync.virtual_kitchen.gopro.files.chapters import Chapter, ChapterRule
from kitchensync.virtual_kitchen.gopro.files.film_grid import FilmGrid
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds
from kitchensync.virtual_kitchen.gopro.files.recorder import ClipFile, LiveClip
from kitchensync.virtual_kitchen.gopro.files.sensors import (
    FIRST_IMU_US,
    FRAME_TICKS,
    VIDEO_TIMESCALE,
    CameraMount,
    Instruments,
    Timeline,
    frame_media_s,
)
from kitchensync.virtual_kitchen.gopro.settings import Settings
from kitchensync.virtual_kitchen.gopro.status import status_values
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.world.clocks import CameraCrystal, camera_clock, media_map
from kitchensync.virtual_kitchen.world.replay import GYRO_RULE, ReplayFromShutter
from kitchensync.virtual_kitchen.world.seeds import camera_seed, generator

GPS_SETTING = 83  # id of the public camera API; a HERO12 has none
SECONDS_TO_2000 = 946_684_800  # GPS9 counts days from 2000-01-01
NS_PER_S = 1_000_000_000
SETTLING_NS = 100_000_000
LONGEST_NAP_S = 0.2  # the time that is waited for may change meanwhile
log = logging.getLogger(__name__)
__all__ = ["Phase", "VirtualCamera", "WrongState"]


class VirtualCamera:
    """One camera. It encodes 50 to 500 ms after a start; after a stop it lists the file, busy for at least 0.3 s."""

    def __init__(
        self,
        kitchen: Kitchen,
        model: str,
        replay: Path | None,
        faults: CameraFaults | None = None,
        chapter_s: float | None = None,
        name: str | int = "",
    ) -> None:
        """Make an idle camera with an empty card in the simulation's folder; several cameras have different names."""
        if model not in MODELS:
            raise KitchenError(f"no GoPro model {model!r}; choose one of {', '.join(MODELS)}")
        self.kitchen, self.model, self.replay = kitchen, MODELS[model], replay
        self.faults = faults or CameraFaults()
        self._name, self._chapter_s = name, chapter_s
        self.seed = camera_seed(kitchen.seed, name)
        self._crystal = camera_clock(self.seed)
        self.card = Card(kitchen.truth.folder / f"gopro-card{name}")
        self.clock = WallClock(kitchen, self._crystal.wall_offset_s)
        self.settings = Settings(self.model.name)
        self.shows_people = False
        self.is_usb_controlled = False
        self.is_turbo = False
        self.control_owner = 0
        self.grid: FilmGrid | None = None
        if replay is None and kitchen.show is None and chapter_s is None:  # a chapter begins with a key frame
            self.grid = FilmGrid(kitchen, CameraMount.of_seed(self.seed), self._crystal)
        self._lock = threading.Lock()
        self._phase = Phase.IDLE
        self._start_world_s = 0.0
        self._clip: FilmedClip | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._has_failed = False
        self.is_dead = False
        self._settled_ns = 0
        self._hilights_ms: list[int] = []
        self._watchers: list[threading.Thread] = []

    @property
    def serial(self) -> str:
        """The camera's serial number."""
        return self.model.serial(self.seed)

    @property
    def is_gone(self) -> bool:
        """Whether the camera is not reachable now."""
        now_s = self.kitchen.now_s()
        return self.is_dead or any(self.faults.active(name, now_s) for name in ("gopro_vanish", *CHANGES))

    @property
    def phase(self) -> Phase:
        """The current phase."""
        with self._lock:
            if self._phase is Phase.STARTING and self.kitchen.now_s() >= self._start_world_s:
                self._phase = Phase.ENCODING
            return self._phase

    @property
    def is_ready(self) -> bool:
        """Whether it takes commands: neither recording nor busy."""
        return self.phase is Phase.IDLE and self.kitchen.clock.now_ns() >= self._settled_ns

    def settle(self) -> None:
        """Be busy for SETTLING_NS, as after a changed setting."""
        self._settled_ns = self.kitchen.clock.now_ns() + SETTLING_NS

    def start_recording(self) -> None:
        """Open the shutter a little later; refuse unless idle."""
        now_ns = self.kitchen.clock.now_ns()
        if not self.is_ready:
            raise WrongState("the camera is busy")
        if self.replay is not None and self.card.files():
            raise WrongState("the replayed file was already recorded")
        self.kitchen.start_world_if_needed(now_ns)
        command_world_s = self.kitchen.world_time_s(now_ns)
        # A replay restarts the motion at the shutter's start, so no device may have sampled that far ahead yet.
        shortest_s = 0.05 if self.replay is None else 0.25
        random = generator(self.seed, "gopro start", round(command_world_s * 1e9))
        delay_s = random.uniform(shortest_s, 0.5)
        with self._lock:
            if self._phase is not Phase.IDLE:
                raise WrongState("the camera is busy")
            start_s = command_world_s + float(delay_s)
            # A clip begins at a frame of the grid.
            self._start_world_s = (
                start_s if self.grid is None else self.grid.world_s(self.grid.first_at(start_s))
            )
            self._phase = Phase.STARTING
            run = self._replayed if self.replay is not None else self._recorded
            self._thread = threading.Thread(target=run, name="gopro clip", daemon=True)
            self._clip = self._prepare_clip()
            self._thread.start()
        self._await_self_ending()

    def mark_hilight(self) -> None:
        """Add a hilight to the running recording. Raises WrongState if there is none."""
        if self.phase is not Phase.ENCODING:
            raise WrongState("nothing is being recorded")
        self._hilights_ms.append(round((self.kitchen.now_s() - self._start_world_s) * 1000))

    def _await_self_ending(self) -> None:
        """Start a thread for each fault that ends a recording."""
        for fault in self.faults.faults:
            if fault.name in SELF_ENDING and fault.times > 0 and fault.start_s < math.inf:
                watcher = threading.Thread(
                    target=self._end_by_itself, args=(fault,), name=fault.name, daemon=True
                )
                self._watchers.append(watcher)
                watcher.start()

    def _end_by_itself(self, fault: CameraFault) -> None:
        with self._lock:
            clip = self._clip
        if self._nap_until(lambda: self.kitchen.host_ns_of(fault.start_s), while_recording=clip):
            self._apply(fault)

    def _nap_until(self, host_ns: Callable[[], int], while_recording: FilmedClip | None) -> bool:
        """Wait until a host time, which may change; return False if the camera is closed or the clip ends before."""
        clock = self.kitchen.clock
        while (left_s := (host_ns() - clock.now_ns()) / NS_PER_S) > 0:
            if clock.nap(self._closing, min(left_s, LONGEST_NAP_S)) or self._clip is not while_recording:
                return False
        return True

    def begin_fault(self, name: str) -> None:
        """Begin a planned fault now instead of at its planned time; it lasts until `end_fault`."""
        fault = self._planned(name)
        fault.start_s, fault.end_s = self.kitchen.now_s(), None
        if name in SELF_ENDING:
            self._apply(fault)

    def end_fault(self, name: str) -> None:
        """End a fault that `begin_fault` began."""
        self._planned(name).end_s = self.kitchen.now_s()

    def _planned(self, name: str) -> CameraFault:
        fault = self.faults.find(name)
        if fault is None:
            raise KitchenError(f"no fault {name!r} is planned for this camera")
        return fault

    def _apply(self, fault: CameraFault) -> None:
        """End the running recording as this fault does."""
        with self._lock:
            clip = self._clip
        fault.times = 0
        if fault.name == "gopro_battery_dead":
            self.is_dead = True
            if clip is not None:
                clip.abandon()
        else:
            self.stop_recording()
            if fault.name == "gopro_new_card" and self._thread is not None:
                self._thread.join()
                self.card.change()

    def stop_recording(self) -> None:
        """Close the shutter, if it is open."""
        with self._lock:
            if self._clip is not None and self._phase in (Phase.STARTING, Phase.ENCODING):
                self._phase = Phase.FINALISING
                self._clip.stop()

    def close(self) -> None:
        """Abandon a running clip and wait for its thread."""
        self._closing.set()
        with self._lock:
            clip, thread = self._clip, self._thread
        if clip is not None:
            clip.abandon()
        for other in [*([thread] if thread is not None else []), *self._watchers]:
            other.join()

    def status(self) -> dict[str, int | str]:
        """Return the status values; the keys are ids as text."""
        phase, now_s = self.phase, self.kitchen.now_s()
        is_encoding = phase is Phase.ENCODING
        has = {
            name: self.faults.active(f"gopro_{name}", now_s)
            for name in ("overheat", "card_full", "write_error")
        }
        return status_values(
            self.model.name,
            phase,
            is_settling=self.kitchen.clock.now_ns() < self._settled_ns,
            encoded_s=int(now_s - self._start_world_s) if is_encoding else 0,
            marks=len(self._hilights_ms) if is_encoding else 0,
            battery_percent=self._battery_percent(now_s),
            files=[file.size for file in self.card.files()],
            is_hot=has["overheat"],
            is_full=has["card_full"],
            is_slow=self._has_failed or has["write_error"],
            control=(self.is_turbo, self.control_owner, self.is_usb_controlled),
        )

    def _battery_percent(self, now_s: float) -> int:
        """Return the battery level: it loses one percent per minute since its last change."""
        changed = [fault.end_s for fault in self.faults.faults if fault.name in CHANGES and fault.end_s]
        since_s = max((at_s for at_s in changed if at_s <= now_s), default=None)
        full, away_s = (100, now_s - since_s) if since_s is not None else (92, now_s)
        return max(full - int(max(away_s, 0.0) / 60), 1)

    def _prepare_clip(self) -> FilmedClip:
        self._wall = self.clock.at_world(self._start_world_s)
        if self.replay is not None:
            # A replay of a camera file starts with the shutter; any other motion began with the world.
            self._media0_world_s = 0.0
            if isinstance(self.kitchen.motion, ReplayFromShutter):
                self.kitchen.motion.begin(self._start_world_s)
                self._media0_world_s = self._start_world_s
            return ReplayClip(self.kitchen)
        self._path = self.card.next_path()
        ids = FileIds(self.model, self.seed, int(self._wall.local_s), self.clock.zone_minutes)
        self._timeline = Timeline(self._crystal, self._start_world_s)
        self._hilights_ms = []
        file = ClipFile(
            self._path,
            self.kitchen,
            self._timeline,
            ids,
            self._wall,
            instruments=self._instruments(),
            rule=ChapterRule(frames=round(self._chapter_s * 30) if self._chapter_s else None),
            on_chapter=lambda chapter: self._record_truth(*self._filmed(chapter)),
            grid=self.grid,
        )
        file.writer.hilights_ms = self._hilights_ms
        self._file = file
        return LiveClip(self.kitchen, self._timeline, file)

    def _instruments(self) -> Instruments:
        """Return the telemetry settings; GPS if the model has it and its setting is on."""
        has_gps = self.model.has_gps and self.settings.values.get(GPS_SETTING) == 1
        return Instruments(gps=has_gps, gps_days=(self._wall.created_utc_s - SECONDS_TO_2000) / 86400)

    def _filmed(self, chapter: Chapter) -> tuple[CardFile, CameraCrystal, float, dict[str, Any]]:
        """Return a chapter's entries on the card and in the truth."""
        created_s = int(self._wall.local_s + chapter.first_frame * FRAME_TICKS / VIDEO_TIMESCALE)
        file = CardFile(chapter.path.name, chapter.path, chapter.size, created_s, tuple(self._hilights_ms))
        media0_world_s = float(self._timeline.world_s(frame_media_s(chapter.first_frame)))
        more = {
            "gyro_rate_hz": CameraMount.of_seed(self.seed).imu_hz,
            "gyro_first_s": FIRST_IMU_US * 1e-6,
            "first_frame": chapter.first_frame,
        }
        return file, self._crystal, media0_world_s, more

    def _recorded(self) -> None:
        """Run a clip that writes its own file."""
        assert self._clip is not None
        try:
            if self._clip.record():
                self._list(*self._filmed(self._file.writer.chapters[-1]))
        except Exception:
            # The camera keeps answering and reports the failure in status 111, as with a failed card.
            log.exception("the virtual GoPro could not record %s", self._path)
            self._has_failed = True
        self._become_idle()

    def _replayed(self) -> None:
        """Run a clip that hands out an existing file."""
        assert self._clip is not None
        assert self.replay is not None
        if self._clip.record():
            file = replayed_file(self.replay, int(self._wall.local_s))
            same_as_world = CameraCrystal(drift_ppm=0.0, wall_offset_s=0.0)
            self._list(file, same_as_world, self._media0_world_s, {"replay": self.replay.name})
        self._become_idle()

    def _list(
        self, file: CardFile, crystal: CameraCrystal, media0_world_s: float, more: dict[str, Any]
    ) -> None:
        """Stay busy as long as a camera does, then write the truth and list the file."""
        busy_s = generator(self.seed, "gopro busy", round(media0_world_s * 1e9)).uniform(0.3, 0.7)
        idle_ns = self.kitchen.clock.now_ns() + round(busy_s * NS_PER_S)
        self._nap_until(lambda: idle_ns, while_recording=self._clip)
        self._record_truth(file, crystal, media0_world_s, more)

    def _record_truth(
        self, file: CardFile, crystal: CameraCrystal, media0_world_s: float, more: dict[str, Any]
    ) -> None:
        truth_map = media_map(self.kitchen.headset_clock, crystal, media0_world_s).as_dict()
        self.kitchen.truth.add_gopro_file(
            file.name,
            file.size,
            sha256_of(file.path),
            truth_map,
            gyro_times=GYRO_RULE,
            start_world_s=media0_world_s,
            **more,
            **({"camera": self._name} if self._name != "" else {}),
        )
        self.card.add(file)

    def _become_idle(self) -> None:
        with self._lock:
            self._clip = None
            self._phase = Phase.IDLE
