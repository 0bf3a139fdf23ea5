"""The cluster side of the command: requests, runs and candidates of a namespace, and what becomes of them."""
