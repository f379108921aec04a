"""Large jumps: the coarse search again per segment, since one lag cannot serve both sides of a lost chapter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kitchensync.sync.align.coarse import RATE_HZ, Coarse, Prepared, read_peaks, scores_of
from kitchensync.sync.align.fine import Fine, Jumps
from kitchensync.sync.align.verdict import THRESHOLDS
from kitchensync.sync.fit.line import Line
from kitchensync.sync.fit.pairing import Pairing
from kitchensync.sync.fit.resample import GyroTrack
from kitchensync.sync.fit.windows import fit_rotation, place_jump

SEGMENTS_IN_TRACK, SHORTEST_S, LONGEST_S = 8.0, 12.0, 60.0
SURE_RHO = 0.5
JUMP_S = 0.040
LEAST_IN_PIECE = 2
LEAST_SURE = 0.5
LOST_RUN = 3


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch of the camera's track and the lag it has by itself."""

    first_s: float
    last_s: float
    found: Coarse

    @property
    def is_sure(self) -> bool:
        """Return whether this lag can be relied on."""
        c = self.found
        alone = c.rival <= THRESHOLDS["rival_share_most"] and c.z >= THRESHOLDS["z_least"]
        return c.rho >= SURE_RHO and alone and not c.edge


def is_suspicious(coarse: Coarse, fine: Fine | None) -> bool:
    """Return whether part of a recording may follow another lag: windows fail in a row, or the match is weak."""
    if fine is None or coarse.rho < SURE_RHO or coarse.rival > THRESHOLDS["rival_share_most"]:
        return True
    lost = np.concatenate([[False], ~fine.lags.kept, [False]])
    edges = np.flatnonzero(np.diff(lost.astype(int)))
    return bool(len(edges) and (edges[1::2] - edges[::2]).max() >= LOST_RUN)


def segments_of(headset: GyroTrack, camera: GyroTrack) -> list[Segment]:
    """The lag of every half-overlapping segment of clip(T/8, 12, 60) s, searched over the whole headset track."""
    whole_h, whole_g = Prepared.of(headset, camera, RATE_HZ)
    seconds = len(whole_g.grid.good) / RATE_HZ
    width = round(float(np.clip(seconds / SEGMENTS_IN_TRACK, SHORTEST_S, LONGEST_S)) * RATE_HZ)
    found = []
    for start in range(0, len(whole_g.grid.good) - width + 1, max(width // 2, 1)):
        part = whole_g.part(start, start + width)
        if not part.grid.good.any():
            continue
        lags_s, score, magnitude, overlap_s = scores_of(whole_h, part)
        coarse = read_peaks(lags_s, score, magnitude, overlap_s, None, 1.0)
        t_s = part.grid.t_s
        found.append(Segment(float(t_s[0]), float(t_s[-1]), coarse))
    return found


def pieces_of(segments: list[Segment]) -> list[list[Segment]]:
    """Sure segments in runs of one lag; runs of a single one are left out, and equal neighbours joined."""
    runs: list[list[Segment]] = []
    for segment in segments:
        if not segment.is_sure:
            continue
        if runs and abs(segment.found.tau_s - runs[-1][-1].found.tau_s) < JUMP_S:
            runs[-1].append(segment)
        else:
            runs.append([segment])
    joined: list[list[Segment]] = []
    for run in (run for run in runs if len(run) >= LEAST_IN_PIECE):
        if joined and abs(run[0].found.tau_s - joined[-1][-1].found.tau_s) < JUMP_S:
            joined[-1] += run
        else:
            joined.append(run)
    return joined


def find_jumps(
    segments: list[Segment], pieces: list[list[Segment]], pairing: Pairing
) -> tuple[float, float, Jumps] | None:
    """Lag and media time to begin with, and the jumps between the pieces; None when it is no story of jumps."""
    used = sum(map(len, pieces))
    if len(pieces) < 2 or used < LEAST_SURE * len(segments):
        return None
    level = [float(np.median([segment.found.tau_s for segment in piece])) for piece in pieces]
    between = [(a[-1].first_s, b[0].last_s) for a, b in pairwise(pieces)]
    jumps = [(0.5 * (low + high), size) for (low, high), size in zip(between, np.diff(level), strict=True)]
    t_ref = 0.5 * (pieces[0][0].first_s + pieces[0][-1].last_s)
    line = Line.start(t_ref, level[0], 0.0, tuple((at, float(size)) for at, size in jumps))
    t_s = pairing.camera.t_s
    sure = pairing.overlap(line.at(t_s))
    for low, high in between:
        sure &= (t_s < low) | (t_s > high)
    if sure.sum() < pairing.camera.hz:
        return None
    rotation = fit_rotation(pairing, line, sure)
    placed = []
    for k, (low, high) in enumerate(between):
        before = Line.start(t_ref, level[k], 0.0, ())
        placed.append(
            (place_jump(pairing, before, rotation, float(level[k + 1] - level[k]), (low, high)), jumps[k][1])
        )
    return level[0], t_ref, tuple((at, float(size)) for at, size in placed)


def in_pieces(coarse: Coarse, pieces: list[list[Segment]]) -> Coarse:
    """The evidence of the coarse search, taken piece by piece: the weakest piece speaks for all."""
    found = [[segment.found for segment in piece] for piece in pieces]
    weakest = min(found, key=lambda piece: float(np.median([c.rho for c in piece])))
    rival = max(weakest, key=lambda c: c.rival)
    return replace(
        coarse,
        tau_s=found[0][0].tau_s,
        rho=float(np.median([c.rho for c in weakest])),
        rho2=rival.rho2,
        second_tau_s=rival.second_tau_s,
        rival=rival.rival,
        z=float(np.median([c.z for c in weakest])),
        edge=False,
    )
