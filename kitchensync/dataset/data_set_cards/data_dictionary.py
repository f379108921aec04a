"""Units and meanings of all arrays of a data set, for README.md and `metadata/columns.json`."""

from __future__ import annotations

import json

from kitchensync.sensors.hololens.streams.spatial_input import JOINTS

PLACE = "metadata/columns.json"
CONVENTIONS = {
    "time": "`capture_ns` is CLOCK_MONOTONIC of the computer that recorded, int64 ns, one clock for all files of a "
    "recording; `calibration/<recording>.json` says what to add to have UTC. Annotated seconds are those of the "
    "film: picture k is shown at k / fps and was taken at `capture_ns[k]` of its `_frames.npz`.",
    "frames": "Frame k is picture k of the headset's front camera, or of the film where `metadata/` says so; "
    "`frame` of any other file tells which frame a row stands beside, and rows of frames without a value are "
    "not there.",
    "world": "Metres, right-handed: x right, y up, z towards the viewer at the start of the headset's app. Rows of "
    "different `world` cannot be compared: the app was started anew between them.",
    "pose": "4 x 4 row-vector matrices as the headset sends them, sensor to world: `p_world = [p, 1] @ pose`. Of the "
    "front camera the sensor's axes are x right, y up, z back; of depth and grey cameras `pose` is that of the rig, "
    "and `extrinsics` in `calibration/` is rig to sensor. `load.py` gives OpenCV's camera axes and column vectors.",
    "depth": "Along the ray of each pixel, millimetres, 0 where there is none; `uv2x`, `uv2y` in `calibration/` are "
    "the ray of each pixel at z = 1. Near depth measures phase: beyond 1055 mm (as video 1024) it is 0 again.",
    "missing": "NaN where a value is not known; film pictures that nobody can place have the least int64.",
}
"""Subject -> convention of all files."""
COLUMNS = {
    "frame": ("", "number of the frame (headset) or of the picture (film)"),
    "capture_ns": ("ns", "when the frame or picture was taken, on the capture clock"),
    "bound_ns": ("ns", "how far `capture_ns` may be off (95 %)"),
    "sample_capture_ns": ("ns", "when the value itself was taken, on the capture clock"),
    "fps": ("1/s", "pictures a second, as numerator and denominator"),
    "hidden": ("", "a privacy pause: the picture is black, and no other value is there"),
    "motion_s": ("s", "where the picture lies in the camera's own motion, seconds of the clip"),
    "sample_motion_s": ("s", "where the sample lies in the clip"),
    "gyroscope_bound_ns": ("ns", "how far both gyroscopes may be apart at start, middle and end (95 %)"),
    "film_frame": ("", "picture of the film beside the frame, -1 for none"),
    "film_capture_ns": ("ns", "when that picture was taken"),
    "film_bound_ns": ("ns", "how far that may be off (95 %)"),
    "head_tracked": ("", "false where the headset did not know its place"),
    "pose": ("m", "pose of the sensor, see `pose` above"),
    "world": ("", "number of the world frame"),
    "focal_px": ("pixel", "fx, fy of the picture"),
    "principal_px": ("pixel", "cx, cy of the picture"),
    "first": ("", "first sample from the frame on"),
    "stop": ("", "first sample from the next frame on"),
    "xyz": (
        "as `unit` says",
        "three axes of the sensor, gravity in acceleration; of a film's camera x left, y out of the screen, z up",
    ),
    "unit": ("", "unit of `xyz`"),
    "valid": ("", "bits of what was seen: 1 head, 2 eye ray, 4 left hand, 8 right hand (spatial input)"),
    "made_of": ("", "text that is another one when the file was made of something else"),
    "head_position": ("m", "place of the head in the world"),
    "head_forward": ("", "where it looks, length 1"),
    "head_up": ("", "where its top points, length 1"),
    "eye_origin": ("m", "where the ray of both eyes begins, in the world"),
    "eye_direction": ("", "where it goes, length 1"),
    "orientation_xyzw": ("", "rotation of each of the 26 joints, a quaternion"),
    "position": ("m", "place of each of the 26 joints in the world"),
    "radius": ("m", "radius of the finger at each joint"),
    "accuracy": ("", "0 high, 1 approximate, of each joint"),
    "reserved": ("", "as sent"),
    "combined_origin": ("m", "ray of both eyes, in the eye tracker's axes"),
    "combined_direction": ("", "its direction, length 1"),
    "left_origin": ("m", "ray of the left eye"),
    "left_direction": ("", "its direction"),
    "right_origin": ("m", "ray of the right eye"),
    "right_direction": ("", "its direction"),
    "left_openness": ("", "0 closed, 1 open"),
    "right_openness": ("", "0 closed, 1 open"),
    "vergence_distance": ("m", "where both eyes' rays meet"),
    "depth-": ("mm", "`depth-000123` is the depth picture beside frame 123"),
    "ab-": ("", "`ab-000123` is how bright its own light came back"),
}
"""Name of an array -> unit, meaning. Arrays of hands have the hand's name in front."""
SIDES = ("left_hand_", "right_hand_")


def as_json() -> str:
    """Return the text of `metadata/columns.json`."""
    columns = {name: {"unit": unit, "meaning": meaning} for name, (unit, meaning) in COLUMNS.items()}
    content = {"conventions": CONVENTIONS, "joints": JOINTS, "columns": columns, "hands": SIDES}
    return json.dumps(content, indent=1) + "\n"
