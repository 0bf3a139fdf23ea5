"""The sidecar: events in over a unix socket, candidates, status and report out to the cluster."""
