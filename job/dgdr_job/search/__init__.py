"""From a run to its events: configuration, preflight, evaluation, ranking, candidates."""
