"""One file a stream of the headset: port, rate, configuration, description, form, decoding, all that it is."""
