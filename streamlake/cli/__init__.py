"""The command line (floor 7).

One file a command; ``app`` puts them together and says how they end: 0 done, 1 an error that is
told, 2 a command that was not understood, 130 interrupted.
"""

from streamlake.cli.app import app, main

__all__ = ["app", "main"]
