"""A recording opened for reading: `open_recording(path)["hololens/gyroscope"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Mask
from kitchensync.shell.files_on_disk import matching
from kitchensync.shell.host_clock import PROBE
from kitchensync.storage.chunks.stored_packets import StoredPackets
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.copies.read_through import promised_hashes, readable_folder
from kitchensync.storage.errors import UnknownStream
from kitchensync.storage.events import LogEvent, read_events
from kitchensync.storage.life import usable_manifest
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import CLOCK_STREAMS, LEDGER_STREAMS, PART_OF, stream_folder
from kitchensync.storage.privacy import AROUND, Pauses, all_but, hidden_packets, pauses_of
from kitchensync.storage.reading.clip_starts import in_order
from kitchensync.storage.reading.instants import Instant, Instants

if TYPE_CHECKING:
    from kitchensync.sensors.hololens.headset_stream import HeadsetStream
    from kitchensync.storage.manifest_form import StreamForm
    from kitchensync.storage.reading.camera_streams import CameraStream, PlaceInClip
    from kitchensync.storage.reading.device_constants import ConstantTable
    from kitchensync.storage.reading.headset_pictures import DepthFrame, Frame
    from kitchensync.storage.reading.inertial import Samples
    from kitchensync.storage.reading.records import Records
    from kitchensync.storage.timeline.device_clock import HostClock
    from kitchensync.storage.timeline.session_time import SessionTime


ADOPTED = "video"
"""Kind of a device with imported videos."""


class StoredStream(StoredPackets):
    """One stream of a recording: its packets, and their decoded content."""

    def __init__(
        self, name: str, folder: Path, description: StreamForm, manifest: Manifest,
        hides: Callable[[npt.NDArray[np.void]], Mask] | None = None,
    ) -> None:  # fmt: skip
        """`description` is the stream's entry in the manifest; `hides` returns the hidden packets of an index."""
        super().__init__(name, folder, description)
        self.manifest = manifest
        self.hides = hides

    @cached_property
    def hidden(self) -> Mask:
        """Which packets may contain data of a privacy pause, (n,)."""
        return super().hidden if self.hides is None else self.hides(self.index)

    def samples(self) -> Samples:
        """Read the samples of an inertial sensor, with sent and repaired timestamps. Raises NotOfThisKind."""
        from kitchensync.storage.reading.inertial import read_samples

        return read_samples(self)

    def frames(self, start: int = 0, stop: int | None = None) -> Iterator[Frame]:
        """Decode the frames [start, stop) of a camera lazily, from the nearest key frame. Raises NotOfThisKind."""
        from kitchensync.storage.reading.headset_pictures import read_frames

        return read_frames(self, start, self._until(stop))

    def depth(self, start: int = 0, stop: int | None = None) -> Iterator[DepthFrame]:
        """Decode the depth images [start, stop), uint16 mm with 0 = invalid. Raises NotOfThisKind."""
        from kitchensync.storage.reading.headset_pictures import read_depth

        return read_depth(self, start, self._until(stop))

    def records(self) -> Records:
        """Read the packets of spatial input or the eye tracker as one array. Raises NotOfThisKind."""
        from kitchensync.storage.reading.records import read_records

        return read_records(self)

    def sound(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """Decode packets of a microphone: (device_ticks, (channels, samples) float32). Raises NotOfThisKind."""
        from kitchensync.storage.reading.records import read_sound

        return read_sound(self, start, self._until(stop))

    def decoded(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield (row, decoded payload) of the packets [start, stop) of any sensor, lazily.

        Payloads of an installed plug-in are decoded by its `decode`, records are arrays, others are bytes. Packets
        that do not decode are left out and listed in `bad`.
        """
        from kitchensync.storage.reading.decoded import read_decoded, sensor_stream

        return read_decoded(self, sensor_stream(self.manifest, self.name), start, self._until(stop))

    def _until(self, stop: int | None) -> int:
        return len(self) if stop is None else min(stop, len(self))


class Recording:
    """One recording folder, read only."""

    def __init__(
        self,
        path: Path,
        *,
        with_pauses: bool = False,
        purpose: Purpose | None = None,
        without_consent: str = "",
    ) -> None:
        """Open a folder; data of its privacy pauses is left out unless `with_pauses`.

        With `purpose`, consent is required; `without_consent` is the reason to open it without. Raises NotARecording,
        Withdrawn, NotPermitted.
        """
        self.path = path
        self._with_pauses = with_pauses
        self.manifest: Manifest = (
            require_consent(path, purpose, without_consent=without_consent)
            if purpose
            else usable_manifest(path)
        )
        self._streams: dict[str, StoredStream] = {}

    def __enter__(self) -> Recording:
        """Return the open recording."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its files."""
        self.close()

    def close(self) -> None:
        """Close its files."""
        for stream in self._streams.values():
            stream.close()

    @property
    def id(self) -> str:
        """The recording's id, which is also the name of its folder."""
        return str(self.manifest["recording"])

    @cached_property
    def readable(self) -> Path:
        """Folder of its large files: its own, or a copy if they were freed. Raises FilesFreed."""
        return readable_folder(self.path, self.manifest)

    @property
    def streams(self) -> list[str]:
        """Full names of the sensor streams, such as `hololens/gyroscope`."""
        return list(self.manifest["streams"])

    def __getitem__(self, name: str) -> StoredStream:
        """Return one stream, `clock/<device>` and `ledger/<device>` too. Raises UnknownStream, FilesFreed."""
        if name not in self._streams:
            if name not in self.streams and name.partition("/")[0] not in (CLOCK_STREAMS, LEDGER_STREAMS):
                raise UnknownStream(name, self.streams)
            description = self.manifest["streams"].get(name, {})
            folder = stream_folder(self.readable, name)
            hides = partial(self.hides, name) if name in self.streams else None
            self._streams[name] = StoredStream(name, folder, description, self.manifest, hides)
        return self._streams[name]

    def newest(self, name: str) -> StoredStream:
        """Return a stream with only its newest file. Raises UnknownStream."""
        stream = self[name]
        stream.only_newest = True
        return stream

    @cached_property
    def pauses(self) -> Pauses:
        """Privacy pauses, spans of the capture clock, ns; empty if opened `with_pauses`.

        For a part of a recording, times outside of the part are included. Raises BadEventLog if the log is damaged.
        """
        if self._with_pauses:
            return ()
        outside = all_but(*self.manifest[PART_OF]["host_ns"]) if PART_OF in self.manifest else ()
        return pauses_of(self.path) + outside

    def hides(self, name: str, index: npt.NDArray[np.void]) -> Mask:
        """Return which packets of a stream, (n,) of INDEX, may contain data of a privacy pause."""
        if not self.pauses:
            return np.zeros(len(index), np.bool_)
        sensor = self.sensor(name)
        around = 0 if sensor is not None and sensor.cut is not None else AROUND
        return hidden_packets(index, self.device_clock(name.partition("/")[0]), self.pauses, around=around)

    def sensor(self, name: str) -> HeadsetStream | None:
        """Return the type of a headset's stream; None for a plug-in's."""
        from kitchensync.storage.reading.decoded import headset_sensor

        return headset_sensor(self.manifest, name)

    def calibration(self, name: str) -> dict[str, ConstantTable]:
        """Return the constants of a stream by name, as its device sent them before streaming. Raises BadChunk."""
        from kitchensync.storage.reading.device_constants import CALIBRATION, read_calibration

        device, _, short = name.partition("/")
        return read_calibration(self.path / device / CALIBRATION / f"{short}.h5")

    @cached_property
    def instants(self) -> Instants:
        """The index of the master's frames by `sync`."""
        return Instants(self.path, self.id, self.streams, self._place_in_clip)

    def _place_in_clip(self, file: str) -> PlaceInClip:
        from kitchensync.storage.reading.camera_streams import place_in_clip

        path = self.readable / file
        return place_in_clip(self.gopro_files.get(path.parent.name, []), path)

    def at(self, master_index: int) -> Instant:
        """Return the samples of all streams at a master frame. Raises NotIndexed, IndexError."""
        return self.instants[master_index]

    @property
    def gopro_files(self) -> dict[str, list[Path]]:
        """Camera files by device name, in the order of chapter and number. Raises FilesFreed."""
        cameras = [name for name, device in self.manifest["devices"].items() if device["kind"] == "gopro"]
        return {name: camera_files(self.readable / name) for name in cameras}

    @property
    def films(self) -> dict[str, list[Path]]:
        """Files of every camera by its name, in order, with imported videos. Raises FilesFreed."""
        devices = self.manifest["devices"].items()
        adopted = [name for name, about in devices if about["kind"] == ADOPTED]
        promised = list(promised_hashes(self.readable, self.manifest)) if adopted else []
        return self.gopro_files | {
            name: [self.readable / path for path in promised if path.partition("/")[0] == name]
            for name in adopted
        }

    def camera(self, name: str, clip: int = 0) -> CameraStream:
        """Return a stream of a camera, such as `gopro/gyroscope`, with its chapters joined. Raises UnknownStream."""
        from kitchensync.storage.reading.alignments import film_clocks
        from kitchensync.storage.reading.camera_streams import camera_stream

        stream = camera_stream(self.gopro_files, name, clip)
        if not stream.is_inertial:
            return stream
        clocks, _ = film_clocks(self.path, self.readable)
        late_s = [clock.telemetry_late_s for clock in clocks if clock.file == stream.clip.path]
        return stream.placed(late_s[0]) if late_s else stream

    def device_clock(self, device: str) -> HostClock | None:
        """Return a headset's ticks on the capture clock by its clock exchanges; None without any."""
        from kitchensync.storage.timeline.device_clock import host_clock

        stream = self[f"{CLOCK_STREAMS}/{device}"]
        if not stream.folder.is_dir() or len(stream) == 0:
            return None
        whole = [payload for _, payload in stream.packets() if len(payload) % PROBE.itemsize == 0]
        exchanges = np.frombuffer(b"".join(whole), PROBE)
        return host_clock(exchanges["host_send_ns"], exchanges["host_receive_ns"], exchanges["device_ticks"])

    def si_scale(self, name: str) -> float | None:
        """Return the factor from values of an inertial stream to rad/s or m/s^2; None if not known.

        A gyroscope's unit is that of the rig file, else the unit that `sync` measured.
        """
        from kitchensync.sensors.hololens.profile import Profile
        from kitchensync.storage.timeline.si_units import ALREADY_SI, RAD_PER_S

        sensor = self.sensor(name)
        if sensor is None:
            return None
        if sensor.is_gyroscope:
            return RAD_PER_S.get(self._gyroscope_unit(name.rpartition("/")[0]))
        return 1.0 if sensor.details(Profile()).get("unit") in ALREADY_SI else None

    def _gyroscope_unit(self, device: str) -> str:
        from kitchensync.storage.reading.alignments import alignment_files, read_alignment

        about = self.manifest["devices"].get(device)
        stated = about and about.get("gyroscope_unit")
        if stated and stated != "auto":
            return stated
        alignments = [read_alignment(path) for path in alignment_files(self.path)]
        units = [
            alignment.headset_gyro.unit.name
            for alignment in alignments
            if alignment.clock_map is not None
            and alignment.headset == device
            and alignment.headset_gyro is not None
            and alignment.headset_gyro.unit is not None
        ]
        return next(iter(units), "")

    @cached_property
    def main_headset(self) -> str:
        """The first headset with packets, whose clock is session time; empty if there is none."""
        headsets = [name for name, device in self.manifest["devices"].items() if device["kind"] == "hololens"]
        return next((name for name in headsets if self._first_ticks(name)), "")

    @cached_property
    def session_time(self) -> SessionTime | None:
        """Session time, ns since the main headset's first packet, by ticks and host times; None without headset."""
        from kitchensync.storage.timeline.session_time import SessionTime

        if not self.main_headset:
            return None
        of_whole = self.manifest.get(PART_OF, {}).get("first_ticks")
        first = min(self._first_ticks(self.main_headset)) if of_whole is None else of_whole
        return SessionTime(first, self.device_clock(self.main_headset))

    def _first_ticks(self, device: str) -> list[int]:
        streams = [self[name] for name in self.streams if name.startswith(f"{device}/")]
        return [int(stream.index["device_ticks"][0]) for stream in streams if len(stream)]

    def events(self) -> list[LogEvent]:
        """Return the logged events, by time on the capture clock."""
        return read_events(self.path)


def camera_files(folder: Path) -> list[Path]:
    """Return a camera's files by number, then chapter: GX020001 continues GX010001, GX010002 is another clip."""
    return in_order(path for path in matching(folder, "*") if path.suffix.upper() == ".MP4")


def open_recording(path: Path | str, *, with_pauses: bool = False) -> Recording:
    """Open a recording for reading; `with_pauses` includes its privacy pauses. Raises NotARecording, Withdrawn."""
    return Recording(Path(path), with_pauses=with_pauses)
