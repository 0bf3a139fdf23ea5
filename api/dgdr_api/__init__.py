"""The contract: what a request, a run, a candidate and an event are. Imports no other room and does no I/O."""
