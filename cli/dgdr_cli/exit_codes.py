"""Exit codes of every command."""

OK = 0
WRONG_INPUT = 2
"""The input is wrong: field, value, bound, what would do."""
HONEST_NO = 3
"""Unsupported, or nothing feasible or renderable."""
FAILED = 4
INTERRUPTED = 130
"""Results so far are kept. Where another signal than the keyboard's ended the program, `main` makes it 128 and that."""
