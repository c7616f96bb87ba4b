"""What tests of staged files share."""

import pyarrow as pa

from streamlake.data import Stager, plain_columns, read_file
from streamlake.protocol.actions import Metadata, Protocol
from streamlake.protocol.schema import schema_to_json

PLAIN = Protocol(1, 2)


def stager_of(
    store, schema, partition_columns=(), *, configuration=None, protocol=PLAIN, **options
):
    metadata = Metadata(
        id="test",
        schema_string=schema_to_json(schema),
        partition_columns=tuple(partition_columns),
        configuration=configuration or {},
    )
    return Stager.over(store, protocol, metadata, **options)


def read_back(store, adds, schema, partition_columns=(), **options):
    parts = [
        read_file(store, add, plain_columns(schema, partition_columns), **options) for add in adds
    ]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def objects(store):
    return [found.path for found in store.list_from("")]
