"""A part of a video keeps the numbers and times of the original, and is empty outside its span."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
from films import film

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.film_part import needed, write_part
from kitchensync.sensors.gopro.mp4.sample_tables import SampleTables, read_chapter

FIRST, LAST = 30, 59
"""The kept frames: a group from key frame to key frame."""
BLOCKS = (10, 40)


def packets_of(path: Path, kind: str) -> list[tuple[int, bytes]]:
    with av.open(str(path)) as container:
        stream = next(stream for stream in container.streams if stream.type == kind)
        return [(packet.pts, bytes(packet)) for packet in container.demux(stream) if packet.size]


def samples_of(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray() for frame in container.decode(audio=0)], axis=1)


def test_a_part_has_only_its_own_frames(tmp_path: Path) -> None:
    original = film(tmp_path / "100GOPRO", 90).chapters[0].path
    part = tmp_path / "part.mp4"
    chapter = read_chapter(original)
    stays = {key: np.full(len(track.tables), key.format != "gpmd") for key, track in chapter.tracks.items()}
    for key, stay in stays.items():
        if key.handler in ("vide", "soun"):
            stay[:] = False
            stay[slice(FIRST, LAST + 1) if key.handler == "vide" else slice(*BLOCKS)] = True
        elif key.format == "gpmd":
            stay[0] = True
    write_part(chapter, part, stays)
    before, after = packets_of(original, "video"), packets_of(part, "video")
    assert [pts for pts, _ in after] == [pts for pts, _ in before]
    assert after[FIRST : LAST + 1] == before[FIRST : LAST + 1]
    outside = [content for number, (_, content) in enumerate(after) if not FIRST <= number <= LAST]
    assert set(outside) == {bytes(4)}
    gone = sum(len(packet) for number, (_, packet) in enumerate(before) if not FIRST <= number <= LAST)
    assert part.stat().st_size < original.stat().st_size - gone + 1000, (
        "each picture of the ring is in it once"
    )
    np.testing.assert_array_equal(open_media(part).frame_times_s, open_media(original).frame_times_s)
    assert packets_of(part, "audio")[slice(*BLOCKS)] == packets_of(original, "audio")[slice(*BLOCKS)]
    heard, now = samples_of(original), samples_of(part)
    assert heard.shape == now.shape
    shown = slice(1024 * (BLOCKS[0] + 1), 1024 * (BLOCKS[1] - 1))
    np.testing.assert_allclose(now[:, shown], heard[:, shown], atol=1e-3)
    assert np.abs(now[:, : 1024 * (BLOCKS[0] - 1)]).max() < 1e-3
    assert np.abs(now[:, 1024 * (BLOCKS[1] + 1) :]).max() < 1e-3
    before, after = open_media(original), open_media(part)
    assert len(after.payloads) == len(before.payloads)
    assert after.payloads[0] == before.payloads[0]
    kept = len(before.stream_parts[0])
    assert [len(parts) for parts in after.stream_parts] == [kept] + [0] * (len(before.payloads) - 1)


def test_frames_that_others_depend_on_are_kept() -> None:
    """Stored I P B B, shown I B B P; the frames stored after the third key frame are shown before it."""
    shown_at = np.array([0, 3, 1, 2, 4, 7, 5, 6, 10, 8, 9, 11])
    keys, opens = np.array([0, 4, 8]), 8
    tables = SampleTables(
        np.ones(12, np.int64), np.arange(12), np.ones(12, np.int64), shown_at - np.arange(12), keys, None
    )
    for first in range(12):
        for last in range(first, 12):
            stored = np.flatnonzero((shown_at >= first) & (shown_at <= last))
            key = keys[keys <= stored.min()].max()
            before = opens - 4 if key == opens and stored.max() > opens else key
            expected = np.zeros(12, np.bool_)
            expected[before : stored.max() + 1] = True
            shown = (shown_at >= first) & (shown_at <= last)
            np.testing.assert_array_equal(needed(tables, shown), expected, f"{first} to {last}")
    assert not needed(tables, np.zeros(12, np.bool_)).any()
