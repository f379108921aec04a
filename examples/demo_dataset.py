"""From a plan to a data set in one run: planned, shown, cooked, recorded, verified, synchronized, corrected,
consented, released, checked, loaded, with two virtual recordings.

    python examples/demo_dataset.py --seconds 30
    python examples/demo_dataset.py --full

Every step is a command that a lab would type, or a request as the tablet and the desk make it. The last line is PASS
only when what was released is what the virtual participants did. `--full` makes six recordings: two recipes, people
and kitchens, normal and with errors; in one there is a privacy pause, one is withdrawn, one has no camera. Five
people then review them at the desk, and what later data sets add is exported, with a page over it.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import later_forms
from check_frame_numbers import Truth, wrong_numbers
from demo import (
    COMMAND,
    REPOSITORY,
    DemoFailed,
    command,
    free_host,
    objections,
    ready_port,
    running,
    say,
    wait_for_app,
    wait_for_manifest,
)

from kitchensync.virtual_kitchen.tablet import Desk, TabletTruth, operation_id, participate


@dataclass(frozen=True)
class Planned:
    """One recording that is to be made."""

    recording: str
    recipe: str = "pan_quesadilla"
    strategy: str = "normal"
    person: str = "virtual-1"
    place: str = "virtual kitchen"
    has_camera: bool = True
    pause_s: tuple[float, float] | None = None
    withdraws: bool = False

    @property
    def is_released(self) -> bool:
        """Return whether it can become part of the data set."""
        return self.has_camera and not self.withdraws


OTHER = {"person": "virtual-2", "place": "other kitchen"}
SHORT = (Planned("kitchen-001"), Planned("kitchen-002", strategy="disordered"))
FULL = (
    Planned("kitchen-001"),
    Planned("kitchen-002", strategy="disordered", **OTHER),
    Planned("kitchen-003", "tea_and_toast", pause_s=(12.0, 17.0), **OTHER),
    Planned("kitchen-004", "tea_and_toast", "disordered"),
    Planned("kitchen-005", "tea_and_toast", withdraws=True),
    Planned("kitchen-006", strategy="disordered", has_camera=False, **OTHER),
)
REMARK = "Corrected at the desk: two spoons instead of one"
CLOSING_S = 10.0
"""The recording goes on so long after the last touch."""
ROUNDED_S = 0.001
"""Released times are whole milliseconds."""


def cook(
    data: Path, sim: Path, url: str, keys: Any, planned: Planned, seconds: float, seed: int
) -> TabletTruth:
    """Record a virtual kitchen while a virtual participant follows what the tablet shows."""
    host = free_host()
    simulate = [COMMAND, "simulate", "--seed", str(seed), "--seconds", f"{seconds:g}", "--out", str(sim)]
    simulate += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0", "--frame-counter"]
    simulate += ["--prepare"]
    with running(simulate, stdout=subprocess.PIPE) as simulator:
        camera = f"http://{host}:{ready_port(simulator)}"
        take = [COMMAND, "record", planned.recording, "--data", str(data), "--hololens", host]
        take += ["--gopro", camera] if planned.has_camera else []
        take += ["--participant", planned.person, "--place", planned.place]
        with running(take) as recorder:
            wait_for_manifest(data / planned.recording / "recording.json", recorder)
            truth = participate(
                url,
                recording=planned.recording,
                seconds=max(seconds - CLOSING_S, 4.0),
                seed=seed,
                keys=keys,
                recipe=planned.recipe,
                strategy=planned.strategy,
                pause_s=planned.pause_s,
                withdraws=planned.withdraws,
            )
            if recorder.wait() != 0 and not planned.withdraws:
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


def kept(data: Path, plan: tuple[Planned, ...]) -> list[str]:
    """Return the folders of the recordings that were not withdrawn."""
    return [str(data / one.recording) for one in plan if not one.withdraws]


def check_recordings(folder: Path, plan: tuple[Planned, ...]) -> list[str]:
    """Verify and synchronize everything that was not withdrawn; return what is not as it should be."""
    paths = kept(folder / "data", plan)
    sims = {one.recording: folder / f"sim-{n}" for n, one in enumerate(plan)}
    problems = []
    for one in command(["verify", *paths])["recordings"]:
        truth = json.loads((sims[one["recording"]] / "truth.json").read_text())
        if objections(one, truth) or one["status"] == "FAIL":
            problems.append(f"verify says {one['status']} of {one['recording']}: {one['reasons']}")
    for one in command(["sync", *paths])["recordings"]:
        if one["status"] not in ("aligned", "check", "nothing_to_align"):
            problems.append(f"sync says {one['status']} of {one['recording']}")
    return problems


def enter_consent(data: Path, plan: tuple[Planned, ...]) -> list[str]:
    """Enter what each participant agreed to, which only the withdrawn recording refuses; return problems."""
    scopes = ["--reference", "form-virtual-1", "--scopes", "annotate,release_raw", "--by", "demo"]
    said = {one: command(["consent", str(data / one.recording), *scopes]).get("status") for one in plan}
    return [
        f"consent to {one.recording}: {status}"
        for one, status in said.items()
        if (status == "refused") is not one.withdraws
    ]


def release(folder: Path, plan: tuple[Planned, ...]) -> tuple[list[str], dict[str, str]]:
    """Make the data set, check and load it; return problems and the published ids."""
    data, out = folder / "data", folder / "data-set"
    make = ["release", "captaincook4d", str(data), "--out", str(out), "--media", "4k,360p,hololens"]
    made = command(make)
    split = ["release", "split", str(out), "--kind", "type", "--ratio", "0.5,0,0.5", "--seed", "1"]
    divided = command([*split, "--out", str(out / "data_splits")])
    counted = command(["release", "stats", str(out), "--html", str(folder / "statistics.html")])
    ids = {one["recording"]: one["published_id"] for one in made.get("recordings", [])}
    left_out = {one["recording"]: one["why"] for one in made.get("left_out", [])}
    wanted = {one.recording for one in plan if one.is_released}
    problems = []
    if ids.keys() != wanted or left_out.keys() != {one.recording for one in plan} - wanted:
        problems.append(f"release: {made['status']}, left out: {left_out}")
    if not (divided["disjoint"] and divided["complete"]) or counted["recordings"] != len(wanted):
        problems.append(f"split or statistics: {divided} {counted['recordings']} recordings")
    checked = command(["release", "check", str(out), "--against", str(data)])
    problems += [
        f"release check: {one}" for one in checked["differences"] + checked["names_or_serials_found"]
    ]
    return problems + [words for name in ("load.py", "verify.py") if (words := run_inside(out, name))], ids


def run_inside(data_set: Path, name: str) -> str:
    """Run a program of a data set as somebody does who has nothing but that; return what is wrong."""
    done = subprocess.run(
        [sys.executable, "-I", str(data_set / name)], capture_output=True, text=True, check=False
    )
    print(done.stdout[-600:] + done.stderr[-2000:])
    return f"{name} ends with {done.returncode}" if done.returncode else ""


def differences(folder: Path, one: Planned, published_id: str, truth: TabletTruth, sim: Path) -> list[str]:
    """Compare a released recording with what the virtual participant really did and when, and what was filmed."""
    out, shown = folder / "data-set", Truth(sim)
    recordings = json.loads((out / "annotation_json" / "error_annotations.json").read_text())
    released = next(each for each in recordings if each["recording_id"] == published_id)
    lines = map(json.loads, (out / "kitchensync.jsonl").read_text().splitlines())
    said = [line for line in lines if line["recording_id"] == published_id and line["kind"] == "entry"]
    taken_back = {tap.undoes for tap in truth.taps if tap.kind == "undo"}
    done = {t.step: t.touch_host_ns for t in truth.taps if t.kind == "done" and t.op_id not in taken_back}
    problems, outside = [], 0
    for entry, line in zip(released["step_annotations"], said, strict=True):
        if line["done"] is not (line["node"] in done):
            problems.append(f"{published_id}: {entry['description']}: done is {line['done']}")
        elif not line["done"]:
            continue  # left out by the script
        elif "end" in line.get("outside", {}):
            outside += 1
        else:
            off_s = entry["end_time"] - shown.film_s_of(done[line["node"]])
            if abs(off_s) > line["bound_s"] + ROUNDED_S:
                problems.append(f"{published_id}: a step ends {off_s:+.4f} s off, not {line['bound_s']} s")
    if outside > 3:
        problems.append(f"{published_id}: {outside} steps of {len(done)} are not in the film")
    errors = [error for entry in released["step_annotations"] for error in entry.get("errors", [])]
    logged = sum(tap.kind == "error" for tap in truth.taps)
    if len(errors) < logged:
        problems.append(f"{published_id}: {len(errors)} errors, {logged} were logged")
    pause = [tap.touch_host_ns for tap in truth.taps if tap.kind in ("pause", "resume")]
    wrong = wrong_numbers(out, published_id, sim, hidden_ns=(pause[0], pause[1]) if pause else None)
    say(f"200 pictures of each film of {one.recording} show their numbers: {len(wrong)} wrong")
    return problems + wrong[:5]


def not_corrected(out: Path, corrected: str) -> list[str]:
    """Return where the correction at the desk stands, unless it stands where it should."""
    recordings = json.loads((out / "annotation_json" / "error_annotations.json").read_text())
    found = [
        entry["description"] for one in recordings for entry in one["step_annotations"]
        for error in entry.get("errors", []) if error["description"] == REMARK
    ]  # fmt: skip
    return [] if found == [corrected] else [f"the correction stands at {found}, not at {corrected}"]


def run(
    folder: Path, plan: tuple[Planned, ...], seconds: float, seed: int, *, has_reviews: bool
) -> list[str]:
    """Make everything; return what is not as it should be."""
    data = folder / "data"
    data.mkdir(parents=True)
    recipes = str(REPOSITORY / "kitchensync" / "examples" / "recipes")
    app = [COMMAND, "app", "--data", str(data), "--port", "0", "--recipes", recipes]
    with running(app, stdout=subprocess.PIPE) as server:
        url, invite = wait_for_app(server)
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            desk = Desk(client)
            keys = {plan[0].person: desk.set_up(invite.rpartition("#")[2], pseudonym=plan[0].person)}
            for person, place in {(one.person, one.place) for one in plan if one.person not in keys}:
                keys[person] = desk.welcome(person, place)
            truths = [
                cook(data, folder / f"sim-{n}", url, keys[one.person], one, seconds, seed + n)
                for n, one in enumerate(plan)
            ]
            problems = check_recordings(folder, plan)
            corrected = correct(desk, truths[1])
            problems += [
                f"sync: {one}"
                for one in command(["sync", *kept(data, plan)])["recordings"]
                if one.get("failed")
            ]
            problems += enter_consent(data, plan)
            if has_reviews:
                problems += reviewed(folder, desk, plan, truths)
    more, ids = release(folder, plan)
    problems += more
    for n, (one, truth) in enumerate(zip(plan, truths, strict=True)):
        if one.recording in ids:
            problems += differences(folder, one, ids[one.recording], truth, folder / f"sim-{n}")
    return problems or not_corrected(folder / "data-set", corrected)


def reviewed(folder: Path, desk: Desk, plan: tuple[Planned, ...], truths: list[TabletTruth]) -> list[str]:
    """Have people review what is to be released, and export what later data sets add; return problems."""
    both = zip(plan, truths, strict=True)
    sessions = {one.recording: truth.session for one, truth in both if one.is_released}
    expected = later_forms.review(desk, sessions, sorted({one.recipe for one in plan}))
    return later_forms.export(folder / "data", folder / "later-forms", expected)


def main() -> int:
    """Run the demo; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each recording")
    parser.add_argument("--full", action="store_true", help="six recordings, of all that is to be told apart")
    parser.add_argument("--seed", type=int, default=1, help="which virtual kitchens")
    parser.add_argument(
        "--out", type=Path, default=REPOSITORY / "demo" / "data-set", help="replaced by each run"
    )
    arguments = parser.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)
    try:
        plan = FULL if arguments.full else SHORT
        problems = run(arguments.out, plan, arguments.seconds, arguments.seed, has_reviews=arguments.full)
    except (DemoFailed, subprocess.TimeoutExpired, RuntimeError, httpx.HTTPError) as error:
        problems = [str(error)]
    except KeyboardInterrupt:
        say("stopped by Ctrl-C; nothing is left running")
        return 130
    say(f"data set: {arguments.out / 'data-set'}")
    if arguments.full:
        say(f"later forms: {arguments.out / 'later-forms' / 'later-forms.html'}")
    for problem in problems:
        print(f"  - {problem}")
    print("FAIL" if problems else "PASS")
    return 1 if problems else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
