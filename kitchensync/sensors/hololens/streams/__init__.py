"""One file a stream of the headset: port, rate, configuration, description, form, decoding, all that it is.

For a new one copy `eye_tracking.py` (one record a packet), `magnetometer.py` (samples) or `microphone.py` (a blob).
`pose_bytes=0` where no pose follows the payload.
"""
