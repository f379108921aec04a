"""What commands that read or write recordings share: given paths, outputs, places of devices and stores."""
