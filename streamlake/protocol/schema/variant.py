"""The variant type in Arrow's terms (PROTOCOL.md, "Variant Data Type")."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

_STORAGE = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)


class VariantType(pa.ExtensionType):
    """A variant: the two binaries of Parquet's encoding, which is for others to decode.

    ``to_pylist`` and tools that don't know the type see a struct of ``metadata`` and ``value``. The
    name is our own: Arrow's Parquet writer takes any type that is called "arrow.parquet.variant"
    for its own class, without a look, and crashes the process.
    """

    def __init__(self) -> None:
        super().__init__(_STORAGE, "streamlake.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        """Nothing: there is one such type."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(
        cls,
        storage_type: pa.DataType,
        serialized: bytes,
    ) -> VariantType:
        """The type again, where it comes from another process."""
        return cls()

    def __hash__(self) -> int:
        """One for all: Arrow's own class has equality alone."""
        return hash(self.extension_name)


pa.register_extension_type(cast("Any", VariantType()))  # the stubs want a class that is gone
