"""The total of many kills: what is counted, what is kept, and that it goes on where it was."""

from __future__ import annotations

import kills
import pytest
from rehearsal.account import Account


def test_the_total_goes_on_where_it_was_and_only_what_is_wrong_is_kept(tmp_path, monkeypatch):
    played = []

    def one(folder, number, _seed):
        folder.mkdir()
        played.append(number)
        parts = ["queue", "queue", "everyone"]
        return Account(folder.name, unexplained=int(number == 1), notes="gone" * (number == 1)), parts, 7

    monkeypatch.setattr(kills, "one", one)
    assert [total.kills for total, _ in kills.run(tmp_path, 6, 4)] == [3, 6]
    (tmp_path / "0002-kill_many").mkdir()  # an interrupted recording
    (total,) = [total for total, _ in kills.run(tmp_path, 7, 4)]
    assert played == [0, 1, 2]
    assert (total.kills, total.recordings, total.sealed_files, total.unexplained) == (9, 3, 21, 1)
    assert total.by_part == {"queue": 6, "everyone": 3}
    assert total.bad == ["0001-kill_many: gone"]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["0001-kill_many", "total.json"]
    assert list(kills.run(tmp_path, 9, 4)) == []
    assert (
        "9 kills in 3 recordings; 21 sealed files: every sealed file opens; unexplained 1" in total.last_line
    )


def test_a_total_of_another_seed_is_not_gone_on_with(tmp_path):
    kills.save(tmp_path, kills.Total(4))
    with pytest.raises(ValueError, match="seed 4"):
        kills.load(tmp_path, 5)


def test_a_kill_that_met_nobody_does_not_count(tmp_path):
    assert kills._sent("queue", [("queue", 2**22 + 1)]) == []


def test_no_process_is_killed_so_often_that_its_recording_gives_it_up(monkeypatch):
    everyone = {"drainer 0": 11, "drainer 1": 12, "producer hololens": 13}
    state = {"pid": 2**22 + 1, "processes": everyone}
    monkeypatch.setattr(kills.time, "monotonic", lambda: 100.0)
    recent = [("drainer 0", 100.0 - ago_s) for ago_s in (1, 5, 9)]
    long_ago = [("drainer 1", 100.0 - kills.DEATHS_WINDOW_S - ago_s) for ago_s in (1, 2, 3)]
    assert kills._spared(state, [*recent, *long_ago]) == [("producer", 13), ("drainer", 12)]
