"""``streamlake demo``: messages from Kafka through a table to a tailer, with crashes on the way.

``command`` is what is typed, ``scenario`` what happens, ``verdict`` what came of it.
"""

from streamlake.cli.demo.command import demo

__all__ = ["demo"]
