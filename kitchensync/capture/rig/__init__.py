"""The rig file: which devices a recording is made with."""
