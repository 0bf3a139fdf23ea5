"""What can be deployed at all: shapes, worker counts, engine limits."""
