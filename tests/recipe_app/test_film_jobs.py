"""A film that nobody asked for is made while there is time, and is in nobody's way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from kitchensync.recipe_app.film_jobs import HEIGHTS, FilmJobs

HEIGHT = HEIGHTS[0]


class World:
    """Films that are made until they are given up or the test lets them be ready."""

    def __init__(self) -> None:
        self.is_recording = False
        self.ready = threading.Event()
        self.jobs = FilmJobs(lambda: self.is_recording)
        self.jobs._make = self._make  # type: ignore[method-assign]

    def _make(self, recording: Path, height: int, job: Any) -> str:
        while not self.ready.wait(0.01):
            if self.jobs._gives_up(job):
                return "ended by a signal"
            if self.jobs._worker.end.is_set():
                return "the app ends"
        return ""

    def state(self, recording: Path) -> str:
        """How the film of a recording is."""
        return str(self.jobs.state(recording, HEIGHT)["state"])


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.jobs.close()


def test_it_is_given_up_where_something_is_recorded_and_begun_again(world: World, tmp_path: Path) -> None:
    world.is_recording = True
    world.jobs.prepare(tmp_path)
    assert world.state(tmp_path) == "none"
    world.is_recording = False
    world.jobs.prepare(tmp_path)
    until(lambda: world.state(tmp_path) == "making", "its turn")
    world.is_recording = True
    until(lambda: world.state(tmp_path) == "none", "it is given up, and has not failed")
    world.is_recording = False
    world.jobs.prepare(tmp_path)
    until(lambda: world.state(tmp_path) == "making", "its turn")
    world.ready.set()
    until(lambda: world.state(tmp_path) == "none", "its end")
    world.jobs.prepare(tmp_path)
    assert world.state(tmp_path) == "none", "once"


def test_it_makes_way_for_one_that_somebody_asks_for(world: World, tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    world.jobs.prepare(first)
    world.jobs.ask(other, HEIGHT)
    until(lambda: world.state(first) == "none", "it makes way")
    until(lambda: world.state(other) == "making", "its turn")
    world.is_recording = True
    assert world.state(other) == "making", "somebody waits for it"
    world.jobs.prepare(first)
    assert world.state(first) == "none"


def test_one_that_somebody_comes_to_wait_for_is_made_to_its_end(world: World, tmp_path: Path) -> None:
    world.jobs.prepare(tmp_path)
    world.jobs.ask(tmp_path, HEIGHT)
    world.is_recording = True
    assert not any(world.jobs._gives_up(job) for job in world.jobs._jobs.values())
    until(lambda: world.state(tmp_path) == "making", "its turn")
