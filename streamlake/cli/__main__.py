"""``python -m streamlake.cli``: the same as ``streamlake``."""

from streamlake.cli.app import main

main()
