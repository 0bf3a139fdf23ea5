"""The specification of the replay, step by step, in integers: slow, and written to be read."""
