"""Recordings as one data set of LeRobot v3.0: films, frames, tasks, episodes, statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import pandas

VERSION = "v3.0"
CHUNK = 1000
"""Files in a folder: one film a camera and episode, one file of frames an episode."""
PLACE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
DATA, VIDEO = f"data/{PLACE}.parquet", f"videos/{{video_key}}/{PLACE}.mp4"
ABOUT = "meta/kitchensync.json"
NO_EVENTS = "no column of LeRobot v3.0 holds them; `export tables` does"
README = """\
---
task_categories: [robotics]
tags: [LeRobot]
configs: [{config_name: default, data_files: data/*/*.parquet}]
---
People cooking, recorded with KitchenSync, one episode a recording. Frame k of an episode is at session time
`session_ns` = start + k / fps; `timestamp` is k / fps.

- `observation.images.<camera>`: the last picture at or before that time, with `capture_ns.<camera>` (session ns at
  which it was taken; -1: none yet, the picture is black) and `bound_s.<camera>` (how far that may be off; -1: nobody
  knows). `valid.<camera>` is false where that picture is older than 1.5 usual steps of the camera, as in
  a privacy pause, or where the right one cannot be read: then the last one stays. A film has its own sound, each
  packet at its session time; that of pauses is left out.
- `observation.state`: head (x right, y up, z to the back), palms and gaze in the world, metres. What was not seen
  stays as it was last (zero before): `valid.state` says of head, left_hand, right_hand and gaze whether
  it was seen. Places of different `world` cannot be compared.
- `action`: the state of the next frame; nobody commanded anything. In the last frame it is its own state.
- `task`: the steps of the recipe that are being done, joined by `; `, or `no step`; `error` and `error_tags`: what is
  done wrong in them.

`meta/kitchensync.json` names the recordings and what is not in here.
"""


@dataclass
class EpisodePlan:
    """What one recording will be."""

    path: Path
    id: str
    span: ExportedSpan
    sizes: dict[str, tuple[int, int]]
    has_body: bool
    frames: int


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
        """Write a recording as the next episode. Raises OSError, what reading raises."""
        place = {
            "chunk_index": len(self.episodes) // CHUNK,
            "file_index": len(self.episodes) % CHUNK,
        }
        found: dict[str, Statistics] = {}
        films: dict[str, Any] = {}
        columns = self._counted(grid_ns)
        for name, size in self.sizes.items():
            key, camera = f"observation.images.{name}", sources.cameras[name]
            wanted, near = shown_at(camera, grid_ns)
            out = _made_place(self.folder / VIDEO.format(video_key=key, **place))
            sound = sound_in(sources.sounds[name], grid_ns, self.fps) if name in sources.sounds else None
            shown, counts = write_film(camera, sound, wanted, out, size, self.fps, tell)
            columns |= camera_columns(name, camera, wanted, near, shown)
            found[key] = counts.statistics()
            is_heard = sound is not None or self.features.get(key, {}).get("info", {}).get("has_audio", False)
            self.features[key] = _film_feature(size, self.fps, has_audio=is_heard)
            films |= {f"videos/{key}/{one}": value for one, value in place.items()}
            films |= {
                f"videos/{key}/from_timestamp": 0.0,
                f"videos/{key}/to_timestamp": len(grid_ns) / self.fps,
            }
        if self.has_body:
            columns |= state_columns(sources.bodies, grid_ns)
        tasks, told = step_columns(_steps(recording, sources.left_out), grid_ns)
        columns |= told
        columns["task_index"] = np.array([self.tasks.setdefault(task, len(self.tasks)) for task in tasks])
        self.features |= {name: _feature(name, values) for name, values in columns.items()}
        pq.write_table(
            pa.table({name: _array(values) for name, values in columns.items()}),
            _made_place(self.folder / DATA.format(**place)),
        )
        found |= {name: statistics_of(one) for name, one in columns.items() if isinstance(one, np.ndarray)}
        self._note(recording.id, list(dict.fromkeys(tasks)), len(grid_ns), found, place, films)

    def _note(
        self, recording: str, tasks: list[str], frames: int, found: dict[str, Statistics], place: dict[str, int],
        films: dict[str, Any],
    ) -> None:  # fmt: skip
        """Keep what is said of an episode."""
        for name, one in found.items():
            self.statistics.setdefault(name, []).append(one)
        told = {
            f"stats/{name}/{one}": values.tolist() for name in found for one, values in found[name].items()
        }
        self.episodes.append(
            {
                "episode_index": len(self.episodes),
                "tasks": tasks,
                "length": frames,
                "recording": recording,
                "dataset_from_index": self.frames,
                "dataset_to_index": self.frames + frames,
                **{f"data/{one}": value for one, value in place.items()},
                **films,
                **told,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
            }
        )
        self.frames += frames

    def _counted(self, grid_ns: Int64) -> dict[str, Any]:
        """Return the columns that say which frame each is."""
        numbers = np.arange(len(grid_ns))
        return {
            "timestamp": (numbers / self.fps).astype(np.float32),
            "frame_index": numbers,
            "episode_index": np.full(len(grid_ns), len(self.episodes)),
            "index": self.frames + numbers,
            "session_ns": grid_ns,
        }

    def finish(self, about: dict[str, Any]) -> None:
        """Write what is said of all episodes. Raises OSError."""
        _made_place(self.folder / f"meta/episodes/{PLACE.format(chunk_index=0, file_index=0)}.parquet")
        pq.write_table(
            pa.Table.from_pylist(self.episodes), self.folder / "meta/episodes/chunk-000/file-000.parquet"
        )
        _task_table(self.tasks).to_parquet(self.folder / "meta/tasks.parquet")
        statistics = {
            name: {one: values.tolist() for one, values in joined(each).items()}
            for name, each in self.statistics.items()
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


def write_lerobot(
    paths: list[Path],
    out: Path,
    choice: ExportChoice,
    fps: int,
    width: int,
    tell: Progress,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Write recordings as one data set; return what it holds and what was left out, with the reasons.

    One picture is in memory at a time, beside the columns of an episode. Of several recordings those that cannot be
    given are left out; of one that is refused. Raises OutputRefused, NoEpisodes, what reading raises.
    """
    without: dict[str, str] = {}
    plans = list(_plans(paths, choice, fps, width, without))
    sizes, has_body = _common_sizes(plans, without), any(plan.has_body for plan in plans)
    if not sizes and not has_body:
        raise NoEpisodes("no camera is in all of these recordings, and no head, hands or gaze in any")
    with written_folder(out, proof=ABOUT, force=force) as folder:
        made, said = LeRobotSet(folder, fps, sizes, has_body), []
        for plan in plans:
            with opened_to_give(plan.path) as recording:
                sources = sources_of(recording, choice.names(recording))
                grid_ns = grid_of(_only(sources, sizes), plan.span, fps)
                made.add(recording, grid_ns, sources, tell)
                left_out = {**sources.left_out, "events": NO_EVENTS}
                without |= {_named(paths, plan.id, name): why for name, why in left_out.items()}
            seconds = [int(grid_ns[0]) / 1e9, int(grid_ns[-1]) / 1e9]
            said.append({"recording": plan.id, "frames": len(grid_ns), "span_s": seconds})
        about = {
            "fps": fps,
            "episodes": said,
            "frames": made.frames,
            "cameras": {name: list(size) for name, size in sizes.items()},
            "tasks": len(made.tasks),
            "left_out": without,
        }
        made.finish({"schema": "export-lerobot/1", **about})
    return about


def _plans(
    paths: list[Path], choice: ExportChoice, fps: int, width: int, without: dict[str, str]
) -> Iterator[EpisodePlan]:
    """Yield what each recording will be. Raises why the only one, or the first of all, cannot be given."""
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
    grid_ns = grid_of(sources, span, fps)
    for name, camera in sources.cameras.items():
        try:
            sizes[name] = size_of(camera, grid_ns, width)
        except StorageError as error:
            without[_named(paths, recording.id, camera.name)] = str(error)
    return EpisodePlan(path, recording.id, span, sizes, bool(sources.bodies), len(grid_ns))


def _named(paths: list[Path], recording: str, name: str) -> str:
    """Return how something that is left out is named: with its recording where there are several."""
    return name if len(paths) == 1 else f"{recording} {name}"


def _common_sizes(plans: list[EpisodePlan], without: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Return the sizes of the cameras that all recordings have: each episode has the same features.

    Raises NoEpisodes where a camera has pictures of several sizes.
    """
    found = {}
    for name in dict.fromkeys(name for plan in plans for name in plan.sizes):
        lacking = [plan.id for plan in plans if name not in plan.sizes]
        sizes = {plan.sizes[name]: plan.id for plan in plans if name in plan.sizes}
        if lacking:
            without[name] = f"not in {', '.join(lacking)}, and episodes are all alike"
        elif len(sizes) > 1:
            words = " and ".join(f"{wide}x{high} in {one}" for (wide, high), one in sizes.items())
            raise NoEpisodes(f"pictures of {name} are {words}: export those apart")
        else:
            found[name] = next(iter(sizes))
    return found


def _only(sources: EpisodeSources, sizes: dict[str, tuple[int, int]]) -> EpisodeSources:
    sounds = {name: sound for name, sound in sources.sounds.items() if name in sizes}
    return EpisodeSources({name: sources.cameras[name] for name in sizes}, sources.bodies, sounds)


def _steps(recording: OpenedRecording, without: dict[str, str]) -> list[dict[str, Any]]:
    try:
        return recording.step_rows
    except StorageError as error:
        without["steps"] = str(error)
        return []


def _made_place(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _film_feature(size: tuple[int, int], fps: int, *, has_audio: bool) -> dict[str, Any]:
    about = {
        "video.height": size[1], "video.width": size[0], "video.codec": "h264", "video.pix_fmt": "yuv420p",
        "video.is_depth_map": False, "video.fps": fps, "video.channels": 3, "has_audio": has_audio,
    }  # fmt: skip
    shape = [size[1], size[0], 3]
    return {"dtype": "video", "shape": shape, "names": ["height", "width", "channels"], "info": about}


def _feature(name: str, values: Any) -> dict[str, Any]:
    if isinstance(values, list):
        return {"dtype": "string", "shape": [1], "names": None}
    if values.ndim == 1:
        return {"dtype": str(values.dtype), "shape": [1], "names": None}
    names = STATE if values.shape[1] == len(STATE) else PARTS
    return {"dtype": str(values.dtype), "shape": [values.shape[1]], "names": list(names)}


def _array(values: Any) -> Any:
    """Return a column; a row of several numbers is a list of that length."""
    if isinstance(values, list) or values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def _task_table(tasks: dict[str, int]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame(
        {"task_index": list(tasks.values())}, index=pandas.Index(list(tasks), name="task")
    )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    _made_place(path).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
