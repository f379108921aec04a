"""Jobs that make small videos for the browser, one at a time, with their progress."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from kitchensync.dataset.films.review_film import UNPLACED, facts_of
from kitchensync.recipe_app.one_worker import OneWorker
from kitchensync.storage.recording_files.kept_session_card import is_on_card

HEIGHTS = (360, 720)  # only the first is made ahead; the other takes a request
LOOK_S = 1.0
NICE = 10  # the app and a recording that starts meanwhile come first
PROGRAM = "kitchensync.dataset.films.review_film"


class FilmState(TypedDict):
    """State of a small video as pages show it; `left_s` is the remaining time if a rate is known."""

    state: str
    "`waiting` for `wait`, `copying`, `synchronizing`, `making`, `ready` with `facts`, `failed`, `none`, `absent`."
    wait: NotRequired[str]
    done: NotRequired[int]
    whole: NotRequired[int]
    left_s: NotRequired[float | None]
    why: NotRequired[str]
    on_card: NotRequired[bool]
    facts: NotRequired[dict[str, Any]]


@dataclass
class _Job:
    state: str = "waiting"
    "`waiting` for `wait`, `copying`, `synchronizing` or `making`."
    wait: str = "video"
    "The reason to wait: another `video` that is being made, or a `recording`."
    done: int = 0
    whole: int = 0
    began_s: float = 0.0
    why: str = ""
    "Why it failed."
    unasked: bool = False
    "Made in idle time: given up as soon as something else needs the computer."
    given_up: bool = False

    def enter(self, state: str) -> None:
        """Begin another stage of the work."""
        self.state, self.done, self.whole, self.began_s = state, 0, 0, time.monotonic()

    def facts(self) -> FilmState:
        """Return the state as pages show it."""
        if self.state == "waiting":
            return {"state": self.state, "wait": self.wait}
        left_s = seconds_left(self.done, self.whole, time.monotonic() - self.began_s)
        return {"state": self.state, "done": self.done, "whole": self.whole, "left_s": left_s}


def seconds_left(done: int, whole: int, took_s: float) -> float | None:
    """Return the remaining seconds at the rate so far; None without a rate."""
    return round(max(whole - done, 0) * took_s / done, 1) if done > 0 else None


class FilmJobs:
    """Small videos by recording folder and height, made on demand or ahead in idle time."""

    def __init__(self, is_recording: Callable[[], bool] = lambda: False) -> None:
        self._is_recording = is_recording
        self._jobs: dict[tuple[Path, int], _Job] = {}
        self._prepared: set[Path] = set()
        self._worker: OneWorker[tuple[Path, int]] = OneWorker("small films", self._work)
        self._lock = self._worker.lock

    def state(self, recording: Path, height: int) -> FilmState:
        """Return the state of a video: `ready` with its facts, `failed` and why, `none`, or its progress."""
        facts = facts_of(recording, height)
        with self._lock:
            job = self._jobs.get((recording, height))
            if job is not None and not job.why:
                return job.facts()
            if facts is not None:
                return {"state": "ready", "facts": facts}
            return {"state": "failed", "why": job.why} if job is not None else {"state": "none"}

    def ask(self, recording: Path, height: int) -> None:
        """Queue a video, unless it exists or is queued."""
        if facts_of(recording, height) is not None:
            return
        with self._lock:
            self._add(recording, height, _Job())

    def prepare(self, recording: Path) -> None:
        """Make the smaller video ahead of any request, while nothing is recorded and no other video is made."""
        with self._lock:
            if recording in self._prepared or any(not job.why for job in self._jobs.values()):
                return
        if self._is_recording():
            return
        is_there = facts_of(recording, HEIGHTS[0]) is not None
        with self._lock:
            self._prepared.add(recording)
            if not is_there:
                self._add(recording, HEIGHTS[0], _Job(unasked=True))

    def _add(self, recording: Path, height: int, job: _Job) -> None:
        earlier = self._jobs.get((recording, height))
        if earlier is not None and not earlier.why:
            earlier.unasked = earlier.unasked and job.unasked
        elif not self._worker.end.is_set():
            self._jobs[recording, height] = job
            self._worker.add((recording, height))

    def close(self) -> None:
        """Drop queued jobs and end the running one."""
        self._worker.close()

    def _work(self, key: tuple[Path, int]) -> None:
        with self._lock:
            job = self._jobs[key]
            job.enter("copying" if is_on_card(key[0]) else "making")
        why = self._make(*key, job)
        with self._lock:
            if job.given_up:
                self._prepared.discard(key[0])
            if why and not job.given_up:
                job.why = why
            else:
                del self._jobs[key]

    def _make(self, recording: Path, height: int, job: _Job) -> str:
        """Make a video; copy and synchronize the recording first if needed. Return why that failed."""
        film = [PROGRAM, str(recording), str(height)]
        if job.state == "copying":
            code, why = self._run(["kitchensync", "gopro", "fetch", str(recording), "--json"], None)
            if code:
                return why
            job.enter("making")
        code, why = self._run(film, job)
        if code == UNPLACED and self._is_free(job):
            job.enter("synchronizing")
            _, trouble = self._run(["kitchensync", "sync", str(recording), "--json"], None)
            job.enter("making")
            code, why = self._run(film, job)  # ends immediately if the app is closing
            return trouble or why if code == UNPLACED else why
        return why

    def _is_free(self, job: _Job) -> bool:
        """Wait while something is being recorded; return False if the job is given up or the app closes."""
        while self._is_recording():
            job.state, job.wait = "waiting", "recording"
            if self._gives_up(job) or self._worker.end.wait(LOOK_S):
                return False
        return not self._worker.end.is_set()

    def _gives_up(self, job: _Job) -> bool:
        """Return whether a video made in idle time should stop for other work."""
        with self._lock:
            others = any(not other.why for other in self._jobs.values() if other is not job)
        job.given_up = job.given_up or (job.unasked and (others or self._is_recording()))
        return job.given_up

    def _run(self, module: list[str], job: _Job | None) -> tuple[int, str]:
        """Run a module to its end; return its exit code and why it failed. Its progress is set on `job`."""
        command = ["nice", "-n", str(NICE), sys.executable, "-P", "-m", *module]
        stdout, looked_s = subprocess.PIPE if job is not None else subprocess.DEVNULL, time.monotonic()
        try:
            with self._worker.running(command, stdout, subprocess.PIPE) as process:
                assert process.stderr is not None
                with process.stdout or nullcontext(()) as lines, process.stderr:
                    for line in lines:
                        assert job is not None
                        done, whole = map(int, line.split())
                        if done < job.done:  # the second video, of the front camera
                            job.enter("making")
                        job.done, job.whole = done, whole
                        if time.monotonic() - looked_s > LOOK_S:
                            looked_s = time.monotonic()
                            if self._gives_up(job):
                                process.terminate()
                    errors = process.stderr.read().strip().splitlines()
                code = process.wait()
        except OSError as error:
            return 1, f"no film can be made now: {(error.strerror or str(error)).lower()}"
        if code == 0:
            return code, ""
        return code, errors[-1][:600] if errors else f"the process that made the film ended with {code}"
