"""What each sensor of the virtual headset sends."""
