"""The `dgdr` command: composes engine and publisher, and holds no logic that another room needs."""
