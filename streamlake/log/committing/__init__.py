"""How a transaction becomes a commit: tested against what others made, put, and found again."""
