"""The report of a run: every point in a Parquet file, cut into ConfigMaps, and read back from them."""
