"""The Python API: streams, windows, groups. It builds the same logical plans as SQL."""
