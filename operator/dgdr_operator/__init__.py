"""The operator: requests to runs to Jobs, level-based and pure."""
