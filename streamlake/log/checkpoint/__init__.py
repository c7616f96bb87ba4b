"""Checkpoints: the state of a table in few files (PROTOCOL.md, "Checkpoints")."""
