"""Sealed HDF5 files of packets: their form, writing, reading and packing."""
