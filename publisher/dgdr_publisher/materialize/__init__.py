"""The materialization table: every evaluated value with its place in the deployment, or why it needs none."""
