"""The samples of all streams of a recording at one instant, from the tables of `sync`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.shell.array_types import Int64
from kitchensync.storage.errors import AtPath, FilesFreed, pass_on_trouble

if TYPE_CHECKING:
    from kitchensync.storage.reading.camera_streams import PlaceInClip

TICKS_PER_S = 10_000_000
INDEX, POSES = Path("sync") / "index.parquet", Path("sync") / "poses.parquet"


class NotIndexed(AtPath):
    """A recording without a frame index."""

    text = "{at}: {why}"


@dataclass(frozen=True)
class Instant:
    """One row of the index.

    `rows`: sample of each stream by short name, absent if none is near; `dt_us`: how much later it was captured. For
    cameras a row counts through the chapters of its clip, as in `recording.camera("gopro/video", clips["gopro"])`,
    and is absent too if an earlier chapter is damaged or missing; `files`: the file of the frame, and `file_rows`
    its number in that file; `slices`: half-open sample ranges until the next master frame; `poses`: (position_m
    (3,), rotation w x y z (4,)), absent if unknown; `worlds`: the world frame of each pose, counted from 0 at each
    start of the headset's app: poses of different world frames cannot be compared.
    """

    master_index: int
    ticks: int
    rows: dict[str, int] = field(default_factory=dict)
    dt_us: dict[str, int] = field(default_factory=dict)
    clips: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    file_rows: dict[str, int] = field(default_factory=dict)
    slices: dict[str, tuple[int, int]] = field(default_factory=dict)
    poses: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    worlds: dict[str, int] = field(default_factory=dict)


class Instants:
    """The index of one recording: `instants[k]` is the k-th frame of the master. Raises NotIndexed."""

    def __init__(
        self,
        path: Path,
        recording_id: str,
        streams: Sequence[str],
        place_in_clip: Callable[[str], PlaceInClip],
    ) -> None:
        """Take the folder, id and full stream names of a recording; tables are read when they are needed.

        `place_in_clip` finds a file among those of its camera, or raises FilesFreed, SensorError.
        """
        self._path, self._id, self._streams = path, recording_id, streams
        self._place_in_clip = place_in_clip
        self._places: dict[str, PlaceInClip | None] = {}

    def _table(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(self._path / path)
        except FileNotFoundError as error:
            raise NotIndexed(self._id, "no frame index; run `kitchensync sync` first") from error
        except (OSError, ValueError) as error:
            raise NotIndexed(self._id, f"{path} cannot be read; run `kitchensync sync` again") from error
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        return columns, json.loads((table.schema.metadata or {}).get(b"kitchensync", b"{}"))

    @cached_property
    def _index(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self._table(INDEX)

    @cached_property
    def _poses(self) -> dict[str, np.ndarray]:
        return self._table(POSES)[0]

    @property
    def master(self) -> str:
        """Short name of the master stream, which defines the frames."""
        return str(self._index[1].get("name", ""))

    @property
    def names(self) -> list[str]:
        """Names of the streams with rows, the master first."""
        others = [n.removesuffix("_dt_us") for n in self._index[0] if n.endswith("_dt_us")]
        return [self.master, *others]

    @property
    def seconds(self) -> np.ndarray:
        """Seconds of every frame since the first, (n,) float64."""
        ticks = self._index[0]["master_ticks"]
        return (ticks - ticks[0]) / TICKS_PER_S if len(ticks) else np.empty(0)

    @property
    def ticks(self) -> Int64:
        """Ticks of every frame, (n,), on the clock of the main headset, or 100 ns of media time without one."""
        return np.asarray(self._index[0]["master_ticks"], np.int64)

    @property
    def device(self) -> str:
        """Name of the headset whose clock the frames use; without a headset, of the camera."""
        return str(self._index[1].get("clock_of", ""))

    def rows_of(self, name: str) -> Int64:
        """Return the sample of a stream at every frame, (n,), as in `Instant.rows`; -1 for none. Raises KeyError."""
        rows, numbers = self.file_rows_of(name), self._index[0].get(f"{self._column(name)}_file")
        if numbers is None:
            return rows
        for number in np.unique(numbers[rows >= 0]):
            place, here = self._place_of(self._index[1]["files"][number]), numbers == number
            rows[here] = rows[here] + place.first_picture if place is not None else -1
        return rows

    def file_rows_of(self, name: str) -> Int64:
        """Return the sample per frame, (n,), for cameras its number in the file; -1 for none. Raises KeyError."""
        return np.array(self._index[0][f"{self._column(name)}_i"], np.int64)

    def _column(self, name: str) -> str:
        return "master" if name == self.master else name

    def is_film(self, name: str) -> bool:
        """Return whether a stream's pictures are in a camera's files."""
        return f"{self._column(name)}_file" in self._index[0]

    def files_of(self, name: str) -> list[str]:
        """Return the file of a camera's row at every frame; empty for none."""
        column = self._index[0][f"{self._column(name)}_file"]
        files = [*self._index[1]["files"], ""]
        return [str(files[number]) for number in column]

    def slices_of(self, name: str) -> tuple[Int64, Int64]:
        """Return half-open sample ranges of a stream, from each frame to the next, (n,) and (n,)."""
        columns = self._index[0]
        return np.asarray(columns[f"{name}_i0"], np.int64), np.asarray(columns[f"{name}_i1"], np.int64)

    @property
    def runs(self) -> list[str]:
        """Names of the streams with sample ranges."""
        return [name.removesuffix("_i0") for name in self._index[0] if name.endswith("_i0")]

    def stream_of(self, name: str) -> str:
        """Return the full name of a headset's stream with this name in the index."""
        if "/" in name:
            return name
        device = self._index[1].get("clock_of")
        full = [n for n in self._streams if n.partition("/")[2] == name]
        return next((n for n in full if n.partition("/")[0] == device), full[0] if full else name)

    def __len__(self) -> int:
        """Count the frames of the master."""
        return len(self._index[0]["master_ticks"])

    def __getitem__(self, master_index: int) -> Instant:
        """Return everything at the instant of a master frame. Raises IndexError beyond the ends."""
        if not 0 <= master_index < len(self):
            raise IndexError(f"{self._id} has {len(self)} indexed frames, there is no frame {master_index}")
        columns, about = self._index
        here = {name: values[master_index] for name, values in columns.items()}
        instant = Instant(master_index, int(here["master_ticks"]))
        for name in self.names:
            column = self._column(name)
            row = int(here[f"{column}_i"])
            if row < 0:
                continue
            instant.dt_us[name] = int(here.get(f"{name}_dt_us", 0))
            if f"{column}_file" in here:
                file = str(about["files"][int(here[f"{column}_file"])])
                instant.files[name], instant.file_rows[name] = file, row
                place = self._place_of(file)
                if place is not None:
                    instant.rows[name] = place.first_picture + row
                    if place.clip is not None:
                        instant.clips[name] = place.clip
            else:
                instant.rows[name] = row
        for name in (n.removesuffix("_i0") for n in columns if n.endswith("_i0")):
            instant.slices[name] = (int(here[f"{name}_i0"]), int(here[f"{name}_i1"]))
        poses = self._poses
        for name in (n.removesuffix("_valid") for n in poses if n.endswith("_valid")):
            if poses[f"{name}_valid"][master_index]:
                at_m = np.array([poses[f"{name}_{axis}_m"][master_index] for axis in "xyz"])
                turned = np.array([poses[f"{name}_q{axis}"][master_index] for axis in "wxyz"])
                instant.poses[name] = at_m, turned
        worlds = {name: self._poses.get(f"{name}_world") for name in instant.poses}
        instant.worlds.update(
            {n: int(world[master_index]) for n, world in worlds.items() if world is not None}
        )
        return instant

    def _place_of(self, file: str) -> PlaceInClip | None:
        if file not in self._places:
            try:
                self._places[file] = self._place_in_clip(file)
            except (SensorError, FilesFreed) as error:
                pass_on_trouble(error)
                self._places[file] = None
        return self._places[file]
