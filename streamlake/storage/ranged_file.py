"""An object as a file that is opened for random access."""

from __future__ import annotations

import io

from streamlake.storage.store import ObjectStore

_TAIL_BYTES = 64 * 1024


class RangedFile(io.RawIOBase):
    """An object as a file, each read one request; its end, where Parquet has its footer, is kept.

    A read past what the store has gives what there is; ``fetch`` may be overridden to object.
    """

    def __init__(self, store: ObjectStore, path: str, size_bytes: int) -> None:
        super().__init__()
        self.path = path
        self.size_bytes = size_bytes
        self._store = store
        self._position = 0
        self._tail_start = max(0, size_bytes - _TAIL_BYTES)
        self.tail = b""
        self.tail = self.fetch(self._tail_start, size_bytes - self._tail_start)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The byte that is read next."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte; no request."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size_bytes}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """The next bytes: one request, or none within the end that is kept."""
        left = max(0, self.size_bytes - self._position)
        length = left if size < 0 else min(size, left)
        start = self._position - self._tail_start
        data = (
            self.tail[start : start + length] if start >= 0 else self.fetch(self._position, length)
        )
        self._position += length
        return data

    def fetch(self, start: int, length: int) -> bytes:
        """Bytes of the object: one request."""
        return self._store.get_range(self.path, start, length) if length else b""
