"""What a GoPro's files hold, and how chapters are read, joined and stripped."""
