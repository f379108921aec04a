"""A module name has one meaning: where it stands in several folders, they speak of the same thing."""

from __future__ import annotations

from collections import defaultdict

from root_folders import FOLDERS, ROOT

MEANS = {
    "adopt": "make a recording of videos that were filmed elsewhere",
    "alignment": "what `sync` found of one film",
    "calibration": "constants of a sensor",
    "camera": "a GoPro",
    "cameras": "the cameras of a recording: their lenses, takes and clocks",
    "card": "a camera's memory card",
    "chapters": "the files of one take",
    "errors": "the errors of a root folder",
    "events": "what people did while a recording was made",
    "film": "a camera's take as pictures",
    "headset": "a HoloLens",
    "imu": "an inertial sensor",
    "kinds": "what there is, by name",
    "manifest": "recording.json",
    "motion": "how a device moved",
    "names": "names of files",
    "notes": "notes of the ledger",
    "pictures": "decoded pictures",
    "progress": "what people see of long work",
    "release": "a data set in the published form",
    "trouble": "trouble of the computer, which is no finding about data",
    "session": "a recording from its first packets to its stop",
}
FREE = {"__init__", "__main__"}


def test_no_module_name_stands_for_two_things() -> None:
    places = defaultdict(list)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            if "migrations" not in path.parts and path.stem not in FREE:
                places[path.stem].append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    strange = {name: found for name, found in twice.items() if name not in MEANS}
    assert not strange, "rename one, or say here what all of them mean"
