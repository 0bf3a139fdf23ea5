"""The Kubernetes client behind a small Protocol. Knows no meaning of an object."""
