"""How long passes take: raw times of the performance model as columns, and the corrections of the static estimate."""
