"""Every error of the calibration side, one base."""


class CalibrationError(Exception):
    """Base of all calibration errors: one line that names the thing and what to do."""

    exit_code = 1


class NotTracked(CalibrationError):
    """A pose of zeros: the headset did not know where it was."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} poses are untracked (all zero); leave them out with `tracked`")


class BadModel(CalibrationError):
    """A camera model that is not known or not complete."""


class Refused(CalibrationError):
    """Data that a calibration cannot be trusted with; `reason` says why and what to do."""

    def __init__(self, reason: str, example: str | None = None) -> None:
        super().__init__(reason if example is None else f"{reason}; an example is {example}")
        self.reason = reason
        self.example = example


class BadResult(CalibrationError):
    """A calibration file that cannot be read."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path} is no calibration: {reason}")


class NotAligned(CalibrationError):
    """A recording whose camera is on no common clock with its headset."""

    def __init__(self, recording: str, why: str) -> None:
        super().__init__(f"{recording} has no aligned camera: {why}")
