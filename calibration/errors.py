"""Every error of the calibration side, one base."""


class CalibrationError(Exception):
    """Base of all calibration errors: one line that names the thing and what to do."""


class NotTracked(CalibrationError):
    """A pose of zeros: the headset did not know where it was."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} poses are untracked (all zero); leave them out with `tracked`")
