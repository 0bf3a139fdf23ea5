"""A cluster as a store: candidates, the run's status and the report, written by their one writer."""
