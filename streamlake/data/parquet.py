"""Data files as Spark and everyone else reads them, encoded in memory.

Timestamps are microseconds in INT64, decimals integers as far as they fit, lists and maps in their
three-level form (PROTOCOL.md, "Delta Data Type to Parquet Type Mappings"). Every page carries a
checksum, so that a flipped bit shows when it is read. No Arrow or pandas metadata is written.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from streamlake.protocol.properties import DEFAULT_PARQUET_CODEC, ParquetCodec

PageVersion: TypeAlias = Literal["1.0", "2.0"]

DICTIONARY_FROM_ROWS = 1024
"""Files that begin with fewer rows have no dictionaries: they cost more than they save."""


class ParquetEncoder:
    """One data file in the making.

    Args:
        schema: Of the file; without metadata.
        rows: How many rows the first row group will have.
        compression: A codec of Parquet's; "lz4" is the one of raw blocks.
        pages: The format of data pages.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        rows: int,
        compression: ParquetCodec = DEFAULT_PARQUET_CODEC,
        pages: PageVersion = "1.0",
    ) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            version="2.6",
            data_page_version=pages,
            compression=compression,
            use_dictionary=rows >= DICTIONARY_FROM_ROWS,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_checksum=True,
        )

    def write(self, table: pa.Table) -> None:
        """Add ``table``, of exactly the file's schema, as one row group."""
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    @property
    def size_bytes(self) -> int:
        """What the finished row groups take."""
        return self._sink.tell()

    def finish(self) -> pa.Buffer:
        """The bytes of the whole file. The encoder takes nothing more."""
        self._writer.close()
        return self._sink.getvalue()


def encode_parquet(
    table: pa.Table, *, compression: ParquetCodec = DEFAULT_PARQUET_CODEC
) -> pa.Buffer:
    """The bytes of a Parquet file that holds ``table`` in one row group."""
    schema = pa.schema([field.remove_metadata() for field in table.schema])
    encoder = ParquetEncoder(schema, rows=table.num_rows, compression=compression)
    encoder.write(pa.Table.from_arrays(table.columns, schema=schema))
    return encoder.finish()
