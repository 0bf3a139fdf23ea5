"""Exact rate matching: how many workers of each role serve the most for the GPUs they take."""
