"""A short rehearsal, and its table worked out again by a checker that knows nothing of our code."""

from __future__ import annotations

import json
import struct
from collections import Counter
from pathlib import Path

import h5py
import pytest
from processes import kitchensync

pytestmark = [pytest.mark.system, pytest.mark.timeout(580)]

MAY_EXPLAIN = {
    "nothing": set(),
    "kill_producer": {"restart", "reconnect"},
    "stop_producer": {"restart", "reconnect"},
    "kill_drainer": set(),
    "stop_drainer": set(),
    "kill_queue": {"queue_loss", "declared_loss"},
    "cut_socket": {"network", "reconnect"},
    "cut_packet": {"network", "reconnect"},
    "suspend": {"suspend", "reconnect"},
    "disk_full": {"no_space", "declared_loss"},
}


def stored_ticks(folder: Path) -> tuple[Counter, int]:
    """Read a stream's stamps from its files with stock h5py; count sequence numbers that come twice."""
    ticks: Counter = Counter()
    numbers: Counter = Counter()
    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path, "r") as file:
            rows = file["index"][:]
            ticks.update(rows["device_ticks"].tolist())
            numbers.update(rows["seq"].tolist())
    return ticks, sum(count - 1 for count in numbers.values())


def check(folder: Path, verified: dict) -> tuple[int, int, int, list[str]]:
    """Recompute one row from the files: sent, stored, named losses, and what is wrong."""
    scenario = json.loads((folder / "scenario.json").read_text())
    kind = folder.name.partition("-")[2]
    wrong: list[str] = []
    sent_total = stored_total = named = 0
    for truth in sorted((folder / "sim" / "truth" / "hololens").glob("*.jsonl")):
        name = f"hololens/{truth.stem}"
        if name not in verified["streams"]:
            continue
        sent = Counter(json.loads(line)["ticks"] for line in truth.read_text().splitlines())
        stored, duplicates = stored_ticks(folder / "data" / scenario["recording"] / name)
        sent_total, stored_total = sent_total + sent.total(), stored_total + stored.total()
        if duplicates or (stored - sent).total():
            wrong.append(f"{name}: {duplicates} twice, {(stored - sent).total()} never sent")
        gaps = verified["streams"][name]["gaps"]
        for ticks, count in (sent - stored).items():
            fits = [
                g
                for g in gaps
                if g["start_ticks"] < ticks < g["end_ticks"] and g["cause"] in MAY_EXPLAIN[kind]
            ]
            named += count if fits else 0
            if not fits:
                wrong.append(f"{name}: tick {ticks} has no explanation")
        if kind == "nothing" and gaps:
            wrong.append(f"{name}: gaps without a fault: {gaps}")
    return sent_total, stored_total, named, wrong


def test_twelve_scenarios_and_the_second_opinion(tmp_path):
    done = kitchensync(
        "rehearse", "--scenarios", 12, "--seed", 1, "--keep", tmp_path / "kept", "--json", limit_s=560
    )
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["scenarios"]) == ("rehearse/1", 12)
    assert (answer["unexplained"], answer["duplicates"], answer["unreadable_files"]) == (0, 0, 0), answer[
        "rows"
    ]
    assert done.returncode == 0
    rows = {row["name"]: row for row in answer["rows"]}
    folders = sorted((tmp_path / "kept").iterdir())
    assert [folder.name for folder in folders] == sorted(rows)
    for folder in folders:
        verified = json.loads(kitchensync("verify", folder / "data" / "take", "--json").stdout)
        sent, stored, named, wrong = check(folder, verified)
        assert wrong == [], folder.name
        row = rows[folder.name]
        assert (row["produced"], row["stored"], row["named_losses"]) == (sent, stored, named), folder.name


def test_the_second_opinion_sees_a_packet_that_is_gone(tmp_path):
    """The checker itself must be able to fail."""
    folder = tmp_path / "000-nothing"
    stream = folder / "data" / "take" / "hololens" / "gyroscope"
    stream.mkdir(parents=True)
    (folder / "sim" / "truth" / "hololens").mkdir(parents=True)
    lines = [json.dumps({"k": k, "ticks": k * 10}) for k in range(5)]
    (folder / "sim" / "truth" / "hololens" / "gyroscope.jsonl").write_text("\n".join(lines))
    (folder / "scenario.json").write_text(json.dumps({"recording": "take", "faults": []}))
    with h5py.File(stream / "000001.h5", "w") as file:
        rows = [(seq, ticks) for seq, ticks in ((0, 0), (1, 10), (2, 20), (3, 40))]
        raw = b"".join(struct.pack("<Qq", *row) for row in rows)
        import numpy as np

        file["index"] = np.frombuffer(raw, [("seq", "<u8"), ("device_ticks", "<i8")])
    verified = {"streams": {"hololens/gyroscope": {"gaps": []}}}
    assert check(folder, verified)[3] == ["hololens/gyroscope: tick 30 has no explanation"]
    verified["streams"]["hololens/gyroscope"]["gaps"] = [
        {"start_ticks": 20, "end_ticks": 40, "cause": "restart"}
    ]
    (tmp_path / "001-kill_producer").symlink_to(folder)
    assert check(tmp_path / "001-kill_producer", verified) == (5, 4, 1, [])
