"""Recordings as one data set of LeRobot v3.0: videos, frames, tasks, episodes and statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kitchensync.exports.exported_span import ExportChoice, ExportedSpan, NoEpisodes, Progress, opened_to_give
from kitchensync.exports.lerobot.lerobot_episode import (
    PARTS,
    STATE,
    EpisodeSources,
    camera_columns,
    grid_of,
    shown_at,
    size_of,
    sound_in,
    sources_of,
    state_columns,
    step_columns,
    write_film,
)
from kitchensync.exports.lerobot.lerobot_statistics import Statistics, joined, statistics_of
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.shell.array_types import Int64
from kitchensync.storage.errors import StorageError
from kitchensync.storage.options.outputs import written_folder

VERSION = "v3.0"
CHUNK = 1000
"""Files in a folder; an episode has one video per camera and one file of frames."""
PLACE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
DATA, VIDEO = f"data/{PLACE}.parquet", f"videos/{{video_key}}/{PLACE}.mp4"
ABOUT = "meta/kitchensync.json"
NO_EVENTS = "LeRobot v3.0 has no column for them; use `export tables`"
README = """\
---
task_categories: [robotics]
tags: [LeRobot]
configs: [{config_name: default, data_files: data/*/*.parquet}]
---
People cooking, recorded with KitchenSync, one episode per recording. Frame k of an episode is at session time
`session_ns` = start + k / fps; `timestamp` is k / fps.

- `observation.images.<camera>`: the last image at or before that time. `capture_ns.<camera>` is its capture time in
  session ns (-1: no image yet, the frame is black). `bound_s.<camera>` is the error bound of that time (-1: unknown).
  `valid.<camera>` is false if the image is older than 1.5 frame periods of the camera, as in a privacy pause, or if
  the right image cannot be read; then the previous image is repeated. A camera's video has its own sound, each packet
  at its session time, without that of privacy pauses.
- `observation.state`: head (x right, y up, z to the back), palms and gaze in the world, metres. Values that were not
  tracked are the last tracked ones (zero before): `valid.state` has a flag for each of head, left_hand, right_hand
  and gaze. Positions in different `world` frames cannot be compared.
- `action`: the state of the next frame, as there were no commands. The last frame has its own state.
- `task`: the steps of the recipe in progress, joined by `; `, or `no step`. `error` and `error_tags` describe the
  errors in them.

`meta/kitchensync.json` lists the recordings and the data that was left out.
"""


@dataclass
class EpisodePlan:
    """The episode that one recording will become."""

    path: Path
    id: str
    span: ExportedSpan
    sizes: dict[str, tuple[int, int]]
    has_body: bool


@dataclass
class LeRobotSet:
    """A data set while it is written into a folder."""

    folder: Path
    fps: int
    sizes: dict[str, tuple[int, int]]
    has_body: bool
    tasks: dict[str, int] = field(default_factory=dict)
    episodes: list[dict[str, Any]] = field(default_factory=list)
    statistics: dict[str, list[Statistics]] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    frames: int = 0

    def add(
        self, recording: OpenedRecording, grid_ns: Int64, sources: EpisodeSources, tell: Progress
    ) -> None:
        """Write a recording as the next episode. Raises OSError, and the errors of reading."""
        chunk = {"chunk_index": len(self.episodes) // CHUNK, "file_index": len(self.episodes) % CHUNK}
        frames, numbers = len(grid_ns), np.arange(len(grid_ns))
        columns: dict[str, Any] = {
            "timestamp": (numbers / self.fps).astype(np.float32),
            "frame_index": numbers,
            "episode_index": np.full(frames, len(self.episodes)),
            "index": self.frames + numbers,
            "session_ns": grid_ns,
        }
        statistics: dict[str, Statistics] = {}
        videos: dict[str, Any] = {}
        for name in self.sizes:
            key = f"observation.images.{name}"
            more, statistics[key] = self._add_video(key, name, sources, chunk, grid_ns, tell)
            columns |= more
            videos |= {f"videos/{key}/{field}": value for field, value in chunk.items()}
            videos[f"videos/{key}/from_timestamp"] = 0.0
            videos[f"videos/{key}/to_timestamp"] = frames / self.fps
        if self.has_body:
            columns |= state_columns(sources.bodies, grid_ns)
        tasks, more = step_columns(_steps(recording, sources.left_out), grid_ns)
        columns |= more
        columns["task_index"] = np.array([self.tasks.setdefault(task, len(self.tasks)) for task in tasks])
        self.features |= {name: _feature(values) for name, values in columns.items()}
        pq.write_table(
            pa.table({name: _array(values) for name, values in columns.items()}),
            _with_folder(self.folder / DATA.format(**chunk)),
        )
        for name, values in columns.items():
            if isinstance(values, np.ndarray):
                statistics[name] = statistics_of(values)
        for name, values in statistics.items():
            self.statistics.setdefault(name, []).append(values)
        self.episodes.append(
            {
                "episode_index": len(self.episodes),
                "tasks": list(dict.fromkeys(tasks)),
                "length": frames,
                "recording": recording.id,
                "dataset_from_index": self.frames,
                "dataset_to_index": self.frames + frames,
                **{f"data/{field}": value for field, value in chunk.items()},
                **videos,
                **{
                    f"stats/{name}/{field}": values.tolist()
                    for name in statistics
                    for field, values in statistics[name].items()
                },
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
            }
        )
        self.frames += frames

    def _add_video(
        self,
        key: str,
        name: str,
        sources: EpisodeSources,
        chunk: dict[str, int],
        grid_ns: Int64,
        tell: Progress,
    ) -> tuple[dict[str, Any], Statistics]:
        """Write the video of a camera; return its columns and the statistics of its frames."""
        camera, size = sources.cameras[name], self.sizes[name]
        numbers, near = shown_at(camera, grid_ns)
        out = _with_folder(self.folder / VIDEO.format(video_key=key, **chunk))
        sound = sound_in(sources.sounds[name], grid_ns, self.fps) if name in sources.sounds else None
        shown, counts = write_film(camera, sound, numbers, out, size, self.fps, tell)
        has_audio = sound is not None or self.features.get(key, {}).get("info", {}).get("has_audio", False)
        width, height = size
        about = {
            "video.height": height, "video.width": width, "video.codec": "h264", "video.pix_fmt": "yuv420p",
            "video.is_depth_map": False, "video.fps": self.fps, "video.channels": 3, "has_audio": has_audio,
        }  # fmt: skip
        axes = ["height", "width", "channels"]
        self.features[key] = {"dtype": "video", "shape": [height, width, 3], "names": axes, "info": about}
        return camera_columns(name, camera, numbers, near, shown), counts.statistics()

    def finish(self, about: dict[str, Any]) -> None:
        """Write the metadata of all episodes. Raises OSError."""
        import pandas

        episodes = self.folder / f"meta/episodes/{PLACE.format(chunk_index=0, file_index=0)}.parquet"
        pq.write_table(pa.Table.from_pylist(self.episodes), _with_folder(episodes))
        task_names = pandas.Index(list(self.tasks), name="task")
        tasks = pandas.DataFrame({"task_index": list(self.tasks.values())}, index=task_names)
        tasks.to_parquet(self.folder / "meta/tasks.parquet")
        statistics = {
            name: {field: values.tolist() for field, values in joined(episodes).items()}
            for name, episodes in self.statistics.items()
        }
        _write_json(self.folder / "meta/stats.json", statistics)
        _write_json(self.folder / ABOUT, about)
        (self.folder / "README.md").write_text(README, encoding="utf-8")
        _write_json(self.folder / "meta/info.json", self._info())

    def _info(self) -> dict[str, Any]:
        return {
            "codebase_version": VERSION,
            "robot_type": "human",
            "total_episodes": len(self.episodes),
            "total_frames": self.frames,
            "total_tasks": len(self.tasks),
            "chunks_size": CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": self.fps,
            "splits": {"train": f"0:{len(self.episodes)}"},
            "data_path": DATA,
            "video_path": VIDEO if self.sizes else None,
            "features": self.features,
        }


class _Episode(TypedDict):
    recording: str
    frames: int
    span_s: list[float]


class LeRobotContents(TypedDict):
    """The object `export-lerobot/1`."""

    fps: int
    episodes: list[_Episode]
    frames: int
    cameras: dict[str, list[int]]
    "Width and height."
    tasks: int
    left_out: dict[str, str]
    "With the reason."


def write_lerobot(
    paths: list[Path],
    out: Path,
    choice: ExportChoice,
    fps: int,
    width: int,
    tell: Progress,
    *,
    force: bool = False,
) -> LeRobotContents:
    """Write recordings as one data set; return its contents and what was left out, with the reasons.

    One frame is in memory at a time, and the columns of an episode. Of several recordings, those without consent are
    left out. Raises OutputRefused, NoEpisodes, NotPermitted, and the errors of reading.
    """
    without: dict[str, str] = {}
    plans = list(_plans(paths, choice, fps, width, without))
    sizes, has_body = _common_sizes(plans, without), any(plan.has_body for plan in plans)
    if not sizes and not has_body:
        raise NoEpisodes("no camera is in all of these recordings, and none of them has head, hands or gaze")
    with written_folder(out, proof=ABOUT, force=force) as folder:
        data_set, episodes = LeRobotSet(folder, fps, sizes, has_body), list[_Episode]()
        for plan in plans:
            with opened_to_give(plan.path) as recording:
                sources = sources_of(recording, choice.names(recording))
                cameras = {name: sources.cameras[name] for name in sizes}
                grid_ns = grid_of(cameras, sources.bodies, plan.span, fps)
                data_set.add(recording, grid_ns, sources, tell)
                left_out = {**sources.left_out, "events": NO_EVENTS}
                without |= {_left_out_key(paths, plan.id, name): why for name, why in left_out.items()}
            span_s = [int(grid_ns[0]) / 1e9, int(grid_ns[-1]) / 1e9]
            episodes.append({"recording": plan.id, "frames": len(grid_ns), "span_s": span_s})
        about: LeRobotContents = {
            "fps": fps,
            "episodes": episodes,
            "frames": data_set.frames,
            "cameras": {name: list(size) for name, size in sizes.items()},
            "tasks": len(data_set.tasks),
            "left_out": without,
        }
        data_set.finish({"schema": "export-lerobot/1", **about})
    return about


def _plans(
    paths: list[Path], choice: ExportChoice, fps: int, width: int, without: dict[str, str]
) -> Iterator[EpisodePlan]:
    """Yield the episode of each recording. Raises the first error if no recording can be exported."""
    refused: list[StorageError] = []
    for path in paths:
        try:
            with opened_to_give(path) as recording:
                yield _plan(path, recording, choice, fps, width, without, paths)
        except StorageError as error:
            refused.append(error)
            without[path.name] = str(error)
    if len(refused) == len(paths):
        raise refused[0]


def _plan(
    path: Path, recording: OpenedRecording, choice: ExportChoice, fps: int, width: int, without: dict[str, str],
    paths: list[Path],
) -> EpisodePlan:  # fmt: skip
    span, sources, sizes = choice.span(recording), sources_of(recording, choice.names(recording)), {}
    grid_ns = grid_of(sources.cameras, sources.bodies, span, fps)
    for name, camera in sources.cameras.items():
        try:
            sizes[name] = size_of(camera, grid_ns, width)
        except StorageError as error:
            without[_left_out_key(paths, recording.id, camera.name)] = str(error)
    return EpisodePlan(path, recording.id, span, sizes, bool(sources.bodies))


def _left_out_key(paths: list[Path], recording: str, name: str) -> str:
    """Return the key of something that is left out: with its recording if there are several."""
    return name if len(paths) == 1 else f"{recording} {name}"


def _common_sizes(plans: list[EpisodePlan], without: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Return the sizes of the cameras that all recordings have, since all episodes need the same features.

    Raises NoEpisodes if the frames of a camera have several sizes.
    """
    common = {}
    for name in dict.fromkeys(name for plan in plans for name in plan.sizes):
        lacking = [plan.id for plan in plans if name not in plan.sizes]
        sizes = {plan.sizes[name]: plan.id for plan in plans if name in plan.sizes}
        if lacking:
            without[name] = f"not in {', '.join(lacking)}, and all episodes need the same cameras"
        elif len(sizes) > 1:
            texts = " and ".join(f"{width}x{height} in {plan}" for (width, height), plan in sizes.items())
            raise NoEpisodes(f"frames of {name} are {texts}: export these recordings separately")
        else:
            common[name] = next(iter(sizes))
    return common


def _steps(recording: OpenedRecording, without: dict[str, str]) -> list[dict[str, Any]]:
    try:
        return recording.step_rows
    except StorageError as error:
        without["steps"] = str(error)
        return []


def _with_folder(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _feature(values: Any) -> dict[str, Any]:
    if isinstance(values, list):
        return {"dtype": "string", "shape": [1], "names": None}
    if values.ndim == 1:
        return {"dtype": str(values.dtype), "shape": [1], "names": None}
    names = STATE if values.shape[1] == len(STATE) else PARTS
    return {"dtype": str(values.dtype), "shape": [values.shape[1]], "names": list(names)}


def _array(values: Any) -> Any:
    """Return a column; rows of several numbers are lists of fixed length."""
    if isinstance(values, list) or values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def _write_json(path: Path, content: dict[str, Any]) -> None:
    _with_folder(path).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
