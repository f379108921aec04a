"""The steps of a recording as episodes of EgoVerse's Zarr v3 form (GaTech-RL2/EgoVerse, CONTRIBUTING_DATA.md).

Places are in the headset's world, metres, y up. Poses are x, y, z, qw, qx, qy, qz; the axes of the front camera (what
EgoVerse calls head) and of hands are x right, y down, z forward: of a hand, z from wrist to palm and y out of the
palm. A row of 1e9 was not seen.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.calibration.errors import Refused
from kitchensync.calibration.geometry.camera_models import Pinhole
from kitchensync.exports.export_state import left_in_place, made_of
from kitchensync.exports.exported_span import ExportChoice, NoEpisodes, Progress
from kitchensync.reader.body_streams import GazeStream, Hands, HandStream
from kitchensync.reader.headset_streams import PictureStream
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.reader.timed_stream import Unreadable
from kitchensync.sensors.array_types import Floats, Int64
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import is_front_camera
from kitchensync.sensors.hololens.streams.spatial_input import JOINTS
from kitchensync.storage.errors import StorageError, pass_on_trouble
from kitchensync.storage.exports.film import FilmWriter, made_of_film
from kitchensync.storage.shell.outputs import OutputRefused, written, written_folder
from kitchensync.storage.timeline.pose_track import rotation_wxyz

if TYPE_CHECKING:
    import zarr

VERSIONS = {"schema_version": "v3.1", "format_version": "1.0"}
RATES = (30, 60)
MISSING = 1e9
QUALITY = 85
PROOF = "zarr.json"
PICTURES = "images.front_1"
ROWS_OF_CHUNK, PICTURES_OF_SHARD = 100, 300
SHORTEST_S = 1.0
BROKEN_PERIODS = 3.5
"""Pictures that are further apart than so many usual steps do not belong to one episode."""
LENSES = 50
"""So many pictures of an episode are asked for their lens: its focus moves a little."""
KEYPOINTS = (
    "wrist",
    *(f"thumb_{bone}" for bone in ("metacarpal", "proximal", "distal", "tip")),
    *(
        f"{finger}_{bone}"
        for finger in ("index", "middle", "ring", "little")
        for bone in ("proximal", "intermediate", "distal", "tip")
    ),
)
"""The 21 keypoints of MANO with fingertips, in its order."""
WRIST, INDEX, LITTLE, PALM = 0, 5, 17, [0, 5, 9, 13]


class LostPicture(StorageError):
    """Pictures [place, until) of an episode cannot be read: it ends before them, and another begins behind."""

    def __init__(self, place: int, until: int, why: str) -> None:
        super().__init__(f"{until - place} pictures cannot be read: {why}")
        self.place, self.until = place, until


@dataclass(frozen=True)
class Episode:
    """A whole stretch of one step: `numbers` (n,) of the camera's pictures, one after the other."""

    row: dict[str, Any]
    numbers: Int64
    times_s: Floats
    hands: Hands
    fps: int

    def part(self, first: int, last: int) -> Episode:
        """Return the episode of its pictures [first, last)."""
        here = slice(first, last)
        hands = Hands(self.hands.left[here], self.hands.right[here])
        return replace(self, numbers=self.numbers[here], times_s=self.times_s[here], hands=hands)

    @property
    def sides(self) -> list[str]:
        """The hands that were seen."""
        return [side for side in Hands._fields if _seen(self.hands, side).any()]


def write_egoverse(
    recording: OpenedRecording, out: Path, choice: ExportChoice, tell: Progress, *, force: bool = False
) -> dict[str, Any]:
    """Write each whole stretch of each step as `<UTC of its start>.zarr`, and its pictures as `.mp4` beside it.

    Episodes that are there already are left alone. Return them and what is left out, with the reasons. JPEGs of 300
    pictures are in memory at a time. Raises NoEpisodes, OutputRefused, NoSuchSpan, what reading raises.
    """
    camera = _front_camera(recording)
    fps = round(1 / float(np.median(np.diff(np.sort(camera.times[np.isfinite(camera.times)])))))
    if fps not in RATES:
        raise NoEpisodes(
            f"{recording.id}: {camera.name} has {fps} pictures a second, EgoVerse wants 30 or 60"
        )
    without: dict[str, str] = {}
    made, source = [], made_of(recording)
    waiting = list(episodes_of(recording, camera, choice, fps, without))
    while waiting:
        episode = waiting.pop(0)
        try:
            made.append(_write(recording, camera, episode, source, out, tell, force=force))
        except OutputRefused:
            raise
        except LostPicture as lost:
            without[_named(episode.row, episode.times_s[lost.place])] = str(lost)
            pieces = (episode.part(0, lost.place), episode.part(lost.until, len(episode.numbers)))
            waiting[:0] = [whole for piece in pieces if (whole := _trimmed(piece, without))]
        except (StorageError, SensorError, Refused) as error:
            pass_on_trouble(error)
            without[_named(episode.row, episode.times_s[0])] = str(error)
    if not made:
        why = "; ".join(f"{name}: {one}" for name, one in list(without.items())[:3])
        raise NoEpisodes(f"{recording.id}: no step fits: {why or 'none was done in this span'}")
    return {"recording": recording.id, "episodes": made, "left_out": without}


def _front_camera(recording: OpenedRecording) -> PictureStream:
    for name in recording.attributes.values():
        stream = recording[name] if is_front_camera(name) else None
        if isinstance(stream, PictureStream) and np.isfinite(stream.times).sum() > 1:
            return stream
    raise NoEpisodes(f"{recording.id}: it has no pictures of a headset's front camera")


def episodes_of(
    recording: OpenedRecording, camera: PictureStream, choice: ExportChoice, fps: int, without: dict[str, str]
) -> Iterator[Episode]:
    """Yield the whole stretches of each step, without what comes before the first hand and after the last one."""
    span = choice.span(recording)
    worlds = recording.worlds_of(camera.name)[camera.rows]
    hands = recording[recording.attributes["hands"]] if "hands" in recording.attributes else None
    if not isinstance(hands, HandStream):
        raise NoEpisodes(f"{recording.id}: nobody recorded its hands")
    for row in recording.step_rows:
        start_s, end_s = max(row["start"], span.start), min(row["end"], span.end)
        if not row["done"] or end_s <= start_s or choice.step not in (None, row["node"]):
            continue
        if not np.isfinite(end_s - start_s):
            without[_named(row)] = "nobody knows when it was done"
            continue
        found = np.flatnonzero((camera.times >= start_s) & (camera.times < end_s))
        found = found[np.argsort(camera.times[found], kind="stable")]
        broken = np.diff(camera.times[found]) > BROKEN_PERIODS / fps
        pieces = np.split(found, np.flatnonzero(broken | (np.diff(worlds[found]) != 0)) + 1)
        if not len(found):
            without[_named(row)] = f"{camera.name} has no picture of it"
            continue
        for numbers in pieces:
            times_s = camera.times[numbers]
            if episode := _trimmed(Episode(row, numbers, times_s, hands.sample(times_s), fps), without):
                yield episode


def _trimmed(episode: Episode, without: dict[str, str]) -> Episode | None:
    """Return a stretch from the first to the last hand; None, and why, where too little is left."""
    kept = np.flatnonzero(_seen(episode.hands, "left") | _seen(episode.hands, "right"))
    whole = episode.part(int(kept[0]), int(kept[-1]) + 1) if len(kept) else None
    if whole is not None and len(whole.numbers) >= SHORTEST_S * episode.fps:
        return whole
    if len(episode.numbers):
        why = "no hand was seen" if whole is None else f"less than {SHORTEST_S:g} s without a break"
        without[_named(episode.row, episode.times_s[0])] = why
    return None


def _named(row: dict[str, Any], at_s: float | None = None) -> str:
    return f"step {row['node']}" + ("" if at_s is None else f" from {at_s:.2f} s")


def _seen(hands: Hands, side: str) -> npt.NDArray[np.bool_]:
    seen: npt.NDArray[np.bool_] = np.isfinite(getattr(hands, side)).all(axis=(1, 2))
    return seen


def _write(
    recording: OpenedRecording, camera: PictureStream, episode: Episode, source: str, out: Path, tell: Progress, *,
    force: bool,
) -> dict[str, Any]:  # fmt: skip
    """Write one episode and its preview, unless it is there already; return what is said of it."""
    utc_ns = recording.clock.to_utc(camera.session_ns[episode.numbers]).astype(np.int64)
    name = _episode_name(int(utc_ns[0]), episode.row["entry"])
    told = {
        "uuid": recording.stored.manifest["uuid"],
        "made_of": source,
        "entry": episode.row["entry"],
        "session_s": [round(float(episode.times_s[0]), 6), round(float(episode.times_s[-1]), 6)],
    }
    about = {
        "episode": f"{name}.zarr",
        **{key: episode.row[key] for key in ("node", "step", "error", "errors")},
        "frames": len(episode.numbers),
        "hands_seen": {side: round(float(_seen(episode.hands, side).mean()), 3) for side in episode.sides},
    }
    place = out / about["episode"]
    preview = out / f"{name}.mp4"
    if not force:
        is_same = _told_in(place) == told
        whole = about if is_same and made_of_film(preview) == name else None
        if before := left_in_place(whole, place, preview, is_there=not is_same and (place / PROOF).is_file()):
            return before
    arrays = {"obs_rgb_timestamps_ns": utc_ns, **_poses(recording, camera, episode)}
    lens = _lens(camera, episode.numbers)
    with ExitStack() as stack:
        folder = stack.enter_context(written_folder(place, proof=PROOF, force=force))
        is_ours = force or made_of_film(preview) == name
        film_part = stack.enter_context(written(preview, force=is_ours, ending=".mp4"))
        store = _group(folder)
        features = {key: _add(store, key, values) for key, values in arrays.items()}
        with FilmWriter(film_part, Fraction(1, episode.fps), made_of=name) as film:
            shape = _add_pictures(store, camera, episode.numbers, film, tell)
        features[PICTURES] = {"dtype": "jpeg", "shape": shape, "names": ["height", "width", "channel"]}
        features["annotations"] = _add_text(store, text_of(episode.row["step"]), len(episode.numbers))
        store.attrs.update(_attributes(episode, lens, shape, features) | {"kitchensync": told | about})
    return about


def _episode_name(utc_ns: int, entry: int) -> str:
    """Return the UTC of an episode's start as EgoVerse names it; the entry keeps steps that begin together apart."""
    whole_s, ns = divmod(utc_ns + 1000 * entry, 10**9)
    stamp = np.datetime_as_string(np.datetime64(whole_s, "s"))
    return f"{stamp.replace('T', '-').replace(':', '-')}-{ns // 1000:06d}"


def _told_in(place: Path) -> dict[str, Any] | None:
    """Return of which recording and span an episode is that lies there, None where none does."""
    try:
        held = json.loads((place / PROOF).read_text(encoding="utf-8"))["attributes"]["kitchensync"]
        return {key: held[key] for key in ("uuid", "made_of", "entry", "session_s")}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _poses(recording: OpenedRecording, camera: PictureStream, episode: Episode) -> dict[str, Floats]:
    """Return the arrays of head, hands and gaze, by their keys."""
    found = {"obs_head_pose": _rows(camera.world_from_camera[episode.numbers])}
    for side in episode.sides:
        points = keypoints_of(getattr(episode.hands, side))
        hand = hand_frames(points, is_left=side == "left")
        found[f"{side}.obs_ee_pose"] = _rows(hand)
        hand[:, :3, 3] = points[:, WRIST]
        found[f"{side}.obs_wrist_pose"] = _rows(hand)
        flat = points.reshape(len(points), -1)
        found[f"{side}.obs_keypoints"] = np.where(np.isfinite(flat).all(axis=1, keepdims=True), flat, MISSING)
    gaze = recording[recording.attributes["gaze"]] if "gaze" in recording.attributes else None
    if isinstance(gaze, GazeStream):
        rays = gaze.sample(episode.times_s).direction
        if np.isfinite(rays).any():
            found["obs_eye_gaze"] = np.where(np.isfinite(rays).all(axis=1, keepdims=True), rays, MISSING)
    return found


def keypoints_of(joints: npt.NDArray[np.floating]) -> Floats:
    """Return the 21 `KEYPOINTS` (n, 21, 3) of a hand's 26 joints (n, 26, 3), metres."""
    return joints[:, [JOINTS.index(name) for name in KEYPOINTS]].astype(np.float64)


def hand_frames(points: Floats, *, is_left: bool) -> Floats:
    """Return the pose (n, 4, 4) of a hand's palm from its keypoints (n, 21, 3); NaN where they are.

    The place is the mean of wrist and the first joints of index, middle and ring finger.
    """
    wrist, palm = points[:, WRIST], points[:, PALM].mean(axis=1)
    outwards = np.cross(points[:, INDEX] - wrist, points[:, LITTLE] - wrist) * (-1 if is_left else 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        forward = palm - wrist
        forward /= np.linalg.norm(forward, axis=1, keepdims=True)
        right = np.cross(outwards, forward)
        right /= np.linalg.norm(right, axis=1, keepdims=True)
    found = np.zeros((len(points), 4, 4))
    found[:, :3, :3] = np.stack([right, np.cross(forward, right), forward], axis=-1)
    found[:, :3, 3], found[:, 3, 3] = palm, 1.0
    return found


def _rows(frames: Floats) -> Floats:
    """Return frames (n, 4, 4) as rows of EgoVerse, (n, 7)."""
    rows = np.full((len(frames), 7), MISSING)
    known = np.flatnonzero(np.isfinite(frames).all(axis=(1, 2)))
    turns = rotation_wxyz(frames[known, :3, :3])
    turned = np.isfinite(turns).all(axis=1)
    rows[known[turned]] = np.column_stack([frames[known, :3, 3], turns])[turned]
    return rows


def _lens(camera: PictureStream, numbers: Int64) -> Pinhole:
    """Return the middle lens of some of the pictures; a lost one is met again where pictures are written."""
    lenses = []
    for number in numbers[:: max(1, len(numbers) // LENSES)].tolist():
        with suppress(Unreadable):
            lenses.append(camera.lens(number))
    if not lenses:
        raise Unreadable(f"{camera.name}: no picture says with which lens it was taken")
    return lenses[0].changed(np.median([lens.parameters for lens in lenses], axis=0))


def _group(folder: Path) -> zarr.Group:
    import zarr

    return zarr.open_group(str(folder), mode="a", zarr_format=3)


def _add(store: zarr.Group, key: str, values: npt.NDArray[Any]) -> dict[str, Any]:
    """Write numbers, one row a picture; return what the attributes say of them."""
    beside = values.shape[1:]
    rows = -(-len(values) // ROWS_OF_CHUNK) * ROWS_OF_CHUNK
    store.create_array(key, data=values, chunks=(ROWS_OF_CHUNK, *beside), shards=(rows, *beside))
    return {
        "dtype": str(values.dtype),
        "shape": list(beside),
        "names": [f"dim_{place}" for place in range(len(beside))],
    }


def _of_bytes(store: zarr.Group, key: str, count: int, shard: int) -> zarr.Array[Any]:
    """Add an array of bytes, one a chunk: the type that EgoVerse asks for, which Zarr warns may still change."""
    from zarr.core.dtype import VariableLengthBytes
    from zarr.errors import UnstableSpecificationWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableSpecificationWarning)
        return store.create_array(
            key, shape=(count,), chunks=(1,), shards=(shard,), dtype=VariableLengthBytes()
        )


def _add_pictures(
    store: zarr.Group, camera: PictureStream, numbers: Int64, film: FilmWriter, tell: Progress
) -> list[int]:
    """Write pictures as JPEG, and into a film; return height, width and channels."""
    count = len(numbers)
    kept = _of_bytes(store, PICTURES, count, min(count, PICTURES_OF_SHARD))
    shape: list[int] = []
    for first in range(0, count, PICTURES_OF_SHARD):
        block = np.empty(min(PICTURES_OF_SHARD, count - first), object)
        for place in range(len(block)):
            picture = _picture(camera, numbers, first + place)
            film.write(picture, first + place)
            quality = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
            block[place] = cv2.imencode(".jpg", picture[:, :, ::-1], quality)[1].tobytes()
            shape = list(picture.shape)
        kept[first : first + len(block)] = block
        tell(first + len(block), count, camera.name)
    return shape


def _picture(camera: PictureStream, numbers: Int64, place: int) -> npt.NDArray[np.uint8]:
    """Return a picture of an episode. Raises LostPicture."""
    why = ""
    for later in range(place, len(numbers)):
        try:
            picture: npt.NDArray[np.uint8] = camera[int(numbers[later])]
        except Unreadable as error:
            why = why or str(error)
            continue
        if later == place:
            return picture
        raise LostPicture(place, later, why)
    raise LostPicture(place, len(numbers), why)


def _add_text(store: zarr.Group, text: str, frames: int) -> dict[str, Any]:
    said = np.empty(1, object)
    said[0] = json.dumps({"text": text, "start_idx": 0, "end_idx": frames}, ensure_ascii=False).encode()
    _of_bytes(store, "annotations", 1, 1)[:] = said
    return {"dtype": "json", "shape": [1], "names": ["json"], "format": "annotation_v1"}


def text_of(step: str) -> str:
    """Return what a step says to do: without the verb that stands before its hyphen in the recipe's labels."""
    verb, _, text = step.partition("-")
    text = text if text.startswith(verb) else step
    return text.replace(" | ", ", ")  # which EgoVerse does not allow


def _attributes(
    episode: Episode, lens: Pinhole, shape: list[int], features: dict[str, Any]
) -> dict[str, Any]:
    sides = episode.sides
    matrix = np.hstack([lens.matrix, np.zeros((3, 1))]).tolist()
    bent = [lens.k1, lens.k2, lens.p1, lens.p2, lens.k3]
    model = {"model": "OPENCV", "distortion": bent, "rectified": False}
    seen = model if any(bent) else {"model": "PINHOLE", "rectified": True}
    seen |= {"K": matrix, "resolution": [shape[1], shape[0]]}
    return {
        **VERSIONS,
        "embodiment": f"human_{sides[0]}_arm" if len(sides) == 1 else "human_bimanual",
        "data_status": "complete",
        "total_frames": len(episode.numbers),
        "fps": episode.fps,
        "task_name": episode.row["recipe"],
        "task_description": text_of(episode.row["step"]),
        "calibration": {"reference_frame": "camera:front_1", "cameras": {"front_1": seen}},
        "intrinsics": {"front_1": matrix},
        "extrinsics": None,
        "features": features,
    }
