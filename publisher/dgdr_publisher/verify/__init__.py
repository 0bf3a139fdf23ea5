"""An independent reader: deployment in, what it deploys out. Shares no table and no code with the renderer."""
