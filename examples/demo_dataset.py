"""From a plan to a data set in one run: planned, shown, cooked, recorded, verified, synchronized, corrected,
consented, released, checked, loaded, with two virtual recordings.

    python examples/demo_dataset.py --seconds 30

Every step is a command that a lab would type, or a request as the tablet and the desk make it. The last line is PASS
only when what was released is what the virtual participant did.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from check_frame_numbers import wrong_numbers
from demo import (
    COMMAND,
    REPOSITORY,
    DemoFailed,
    command,
    free_host,
    ready_port,
    running,
    say,
    wait_for_app,
    wait_for_manifest,
)

from virtual_kitchen.tablet import Desk, TabletTruth, operation_id, participate

RECORDINGS = {"kitchen-001": "normal", "kitchen-002": "disordered"}
REMARK = "Corrected at the desk: two spoons instead of one"
CLOSING_S = 10.0
"""The recording goes on so long after the last touch."""
SAME_S = 0.12
"""Two touches lie as far apart in the film as they were made, to a picture and the bounds of two clocks."""


def cook(
    data: Path, sim: Path, url: str, keys: Any, recording: str, seconds: float, seed: int
) -> TabletTruth:
    """Record a virtual kitchen while a virtual participant follows what the tablet shows."""
    host = free_host()
    simulate = [COMMAND, "simulate", "--seed", str(seed), "--seconds", f"{seconds:g}", "--out", str(sim)]
    simulate += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0", "--frame-counter"]
    with running(simulate, stdout=subprocess.PIPE) as simulator:
        camera = f"http://{host}:{ready_port(simulator)}"
        take = [COMMAND, "record", recording, "--data", str(data), "--hololens", host, "--gopro", camera]
        take += ["--participant", "virtual-1", "--place", "virtual kitchen"]
        with running(take) as recorder:
            wait_for_manifest(data / recording / "recording.json", recorder)
            truth = participate(
                url,
                recording=recording,
                seconds=max(seconds - CLOSING_S, 4.0),
                seed=seed,
                keys=keys,
                recipe="pan_quesadilla",
                strategy=RECORDINGS[recording],
            )
            if recorder.wait() != 0:
                raise DemoFailed(f"record ended with exit code {recorder.returncode}")
        simulator.send_signal(signal.SIGTERM)
        simulator.wait(timeout=60)
    return truth


def correct(desk: Desk, truth: TabletTruth) -> str:
    """Describe, at the desk, an error that was logged with two taps; return the step's text."""
    desk.headers = {"x-kitchensync-login": desk.admin}
    say(f"correct an error of {truth.recording} at the desk")
    answer = desk.client.get(f"/api/v1/desk/recordings/{truth.session}", headers=desk.headers)
    state = answer.raise_for_status().json()
    error = next(error for error in state["errors"].values() if error["origin"] == "follow")
    body = {"error_id": error["error_id"], "fields": {"description": REMARK}}
    sent = {
        "op_id": operation_id(random.Random(truth.session)),
        "kind": "edit_error",
        "body": body,
        "seen": truth.log_end,
    }
    desk.ask(f"/api/v1/desk/recordings/{truth.session}/corrections", sent)
    label: str = state["recording"]["steps"][str(error["node"])]["label"]
    return label


def check_recordings(data: Path) -> list[str]:
    """Verify and synchronize everything; return what is not as it should be."""
    problems = [
        f"verify: {one}" for one in command(["verify", str(data)])["recordings"] if one["status"] != "PASS"
    ]
    for one in command(["sync", str(data)])["recordings"]:
        if one["status"] not in ("aligned", "check"):
            problems.append(f"sync says {one['status']} of {one['recording']}")
    return problems


def release(folder: Path) -> list[str]:
    """Try it without consent, then with; check the data set and load it."""
    data, out = folder / "data", folder / "data-set"
    make = ["release", "captaincook4d", str(data), "--out", str(out), "--media", "4k,360p,hololens"]
    if command(make)["status"] != "refused" or out.exists():
        return ["a release without consent was not refused"]
    for recording in RECORDINGS:
        scopes = ["--reference", "form-virtual-1", "--scopes", "annotate,release_raw", "--by", "demo"]
        command(["consent", str(data / recording), *scopes])
    made = command(make)
    split = ["release", "split", str(out), "--kind", "type", "--ratio", "0.5,0,0.5", "--seed", "1"]
    divided = command([*split, "--out", str(out / "data_splits")])
    counted = command(["release", "stats", str(out), "--html", str(folder / "statistics.html")])
    problems = [] if made["status"] == "PASS" else [f"release: {made['status']} {made.get('left_out')}"]
    for number, one in enumerate(made.get("recordings", [])):
        wrong = wrong_numbers(out, one["published_id"], folder / f"sim-{number}")
        say(f"200 pictures of each film of {one['recording']} show their numbers: {len(wrong)} wrong")
        problems += wrong[:5]
    if not (divided["disjoint"] and divided["complete"]) or counted["recordings"] != len(RECORDINGS):
        problems.append(f"split or statistics: {divided} {counted['recordings']} recordings")
    checked = command(["release", "check", str(out), "--against", str(data)])
    problems += [
        f"release check: {one}" for one in checked["differences"] + checked["names_or_serials_found"]
    ]
    loaded = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / "load_release.py"), str(out)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(loaded.stdout[-600:] + loaded.stderr[-2000:])
    return problems + (["the data set does not load"] if loaded.returncode else [])


def differences(out: Path, truths: list[TabletTruth], corrected: str) -> list[str]:
    """Compare the released steps with what the virtual participant really did and when."""
    recordings = json.loads((out / "annotation_json" / "error_annotations.json").read_text())
    problems = []
    for released, truth in zip(recordings, truths, strict=True):
        taken_back = {tap.undoes for tap in truth.taps if tap.kind == "undo"}
        done = {t.step: t.touch_host_ns for t in truth.taps if t.kind == "done" and t.op_id not in taken_back}
        entries = released["step_annotations"]
        ends = [(touch, entry["end_time"]) for (_, touch), entry in zip(done.items(), entries, strict=False)]
        filmed = [(touch_ns, end_s) for touch_ns, end_s in ends if end_s > 0]  # else before its first picture
        first_ns, first_s = filmed[0]
        for touch_ns, end_s in filmed:
            off_s = end_s - first_s - (touch_ns - first_ns) / 1e9
            if abs(off_s) > SAME_S:
                problems.append(f"{released['recording_id']}: a step ends {off_s:+.3f} s off")
        if len(filmed) < len(ends) - 3:
            problems.append(
                f"{released['recording_id']}: only {len(filmed)} of {len(ends)} steps are in the film"
            )
        errors = [error for entry in entries for error in entry.get("errors", [])]
        logged = sum(tap.kind == "error" for tap in truth.taps)
        if len(errors) < logged:
            problems.append(f"{released['recording_id']}: {len(errors)} errors, {logged} were logged")
    found = [
        entry["description"] for one in recordings for entry in one["step_annotations"]
        for error in entry.get("errors", []) if error["description"] == REMARK
    ]  # fmt: skip
    if found != [corrected]:
        problems.append(f"the correction stands at {found}, not at {corrected}")
    return problems


def run(folder: Path, seconds: float, seed: int) -> list[str]:
    """Make everything; return what is not as it should be."""
    data = folder / "data"
    data.mkdir(parents=True)
    recipes = str(REPOSITORY / "examples" / "recipes")
    app = [COMMAND, "app", "--data", str(data), "--port", "0", "--recipes", recipes]
    with running(app, stdout=subprocess.PIPE) as server:
        url, invite = wait_for_app(server)
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            desk = Desk(client)
            keys = desk.set_up(invite.rpartition("#")[2], pseudonym="virtual-1")
            truths = [
                cook(data, folder / f"sim-{n}", url, keys, recording, seconds, seed + n)
                for n, recording in enumerate(RECORDINGS)
            ]
            problems = check_recordings(data)
            corrected = correct(desk, truths[1])
            problems += [
                f"sync: {one}" for one in command(["sync", str(data)])["recordings"] if one.get("failed")
            ]
    problems += release(folder)
    return problems or differences(folder / "data-set", truths, corrected)


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each recording")
    parser.add_argument("--seed", type=int, default=1, help="which virtual kitchens")
    parser.add_argument(
        "--out", type=Path, default=REPOSITORY / "demo" / "data-set", help="replaced by each run"
    )
    arguments = parser.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)
    try:
        problems = run(arguments.out, arguments.seconds, arguments.seed)
    except (DemoFailed, subprocess.TimeoutExpired, RuntimeError, httpx.HTTPError) as error:
        problems = [str(error)]
    except KeyboardInterrupt:
        say("stopped by Ctrl-C; nothing is left running")
        return 130
    say(f"data set: {arguments.out / 'data-set'}")
    for problem in problems:
        print(f"  - {problem}")
    print("FAIL" if problems else "PASS")
    return 1 if problems else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
