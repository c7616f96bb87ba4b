"""Appends that meet a change of metadata: rebased where their files fit, refused where not."""

import msgspec
import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Log, Transaction
from streamlake.log.committing.fitting import misfits
from streamlake.protocol import Metadata, Protocol
from streamlake.protocol.properties import COLUMN_MAPPING_MODE
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock, TableBuilder

TYPE_CHANGES = "delta.typeChanges"
PLACE = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("day", pa.int32()),
        pa.field("n", pa.int32()),
        pa.field("place", PLACE),
        pa.field("sizes", pa.list_(pa.int32())),
        pa.field("tags", pa.map_(pa.string(), pa.int32())),
    ]
)


def column(name, kind, *, nullable=True, **metadata):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def change(before, after, below=None):
    told = {"fromType": before, "toType": after}
    return {**told, "fieldPath": below} if below else told


def place(*fields):
    return column("place", {"type": "struct", "fields": list(fields)})


def sizes(kind, *, nullable=True, widened=None):
    array = {"type": "array", "elementType": kind, "containsNull": nullable}
    return column("sizes", array, **({TYPE_CHANGES: [widened]} if widened else {}))


def tags(kind, *widened):
    pairs = {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}
    return column("tags", pairs, **({TYPE_CHANGES: list(widened)} if widened else {}))


X, Y = column("x", "integer"), column("y", "integer")
COLUMNS = {
    "day": column("day", "integer"),
    "n": column("n", "integer"),
    "place": place(X, Y),
    "sizes": sizes("integer"),
    "tags": tags("integer"),
}


def schema_with(**changed):
    """The schema's JSON with some columns changed, added, or (None) left out."""
    columns = {**COLUMNS, **changed}
    return msgspec.json.encode(
        {"type": "struct", "fields": [found for found in columns.values() if found]}
    ).decode()


def named(name, kind, physical, **metadata):
    renamed = {"delta.columnMapping.physicalName": physical, **metadata}
    return column(name, kind, **renamed)


def append_across(*, schema=None, partitions=("day",), configuration=None):
    """Stage an append, let the metadata change, commit: as the handle that has not seen it."""
    store = MemoryStore()
    TableBuilder(store, ManualClock()).schema(SCHEMA).partitioned_by("day").write()
    clock = ManualClock()
    behind, other = (sl.Table(Log(store, clock=clock)) for _ in range(2))
    stager = behind.stager()
    files = stager.stage(pa.table({name: [None] for name in SCHEMA.names}, schema=SCHEMA))
    head = other.log.refresh()
    changed = msgspec.structs.replace(
        head.metadata,
        schema_string=schema or head.metadata.schema_string,
        partition_columns=partitions,
        configuration=configuration or {},
    )
    other.log.commit(Transaction(operation="CHANGE", metadata=changed, read_version=head.version))
    return behind.commit_staged(files, staged_by=stager)


FITTING = {
    "a column that may be null": {"schema": schema_with(more=column("more", "date"))},
    "a field that may be null": {"schema": schema_with(place=place(X, Y, column("z", "date")))},
    "a NOT NULL field of a struct that the files lack": {
        "schema": schema_with(
            more=column("more", {"type": "struct", "fields": [column("z", "date", nullable=False)]})
        )
    },
    "a comment": {"schema": schema_with(n=column("n", "integer", comment="a number"))},
    "a default": {"schema": schema_with(n=column("n", "integer", CURRENT_DEFAULT="7"))},
    "a type that was widened": {
        "schema": schema_with(
            n=column(
                "n", "long", **{"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
            )
        )
    },
    "elements that were widened": {
        "schema": schema_with(sizes=sizes("long", widened=change("integer", "long", "element")))
    },
    "values of a map that were widened twice": {
        "schema": schema_with(
            tags=tags(
                "decimal(20,0)",
                change("integer", "long", "value"),
                change("long", "decimal(20,0)", "value"),
            )
        )
    },
    "what may be null left out, and columns without metadata": {
        "schema": schema_with(
            sizes=column("sizes", {"type": "array", "elementType": "integer"}),
            tags={
                "name": "tags",
                "type": {"type": "map", "keyType": "string", "valueType": "integer"},
                "metadata": None,
            },
        )
    },
    "columns in another order": {"schema": schema_with(day=None, last=column("day", "integer"))},
    "a property": {"configuration": {"team": "orders", "delta.appendOnly": "true"}},
}
MISFITTING = {
    "NOT NULL": ({"schema": schema_with(n=column("n", "integer", nullable=False))}, "NOT NULL"),
    "a new column that is NOT NULL": (
        {"schema": schema_with(more=column("more", "date", nullable=False))},
        "'more' .* the files lack it",
    ),
    "a new field that is NOT NULL": (
        {"schema": schema_with(place=place(X, Y, column("z", "date", nullable=False)))},
        "'place.z' .* the files lack it",
    ),
    "NOT NULL elements": ({"schema": schema_with(sizes=sizes("integer", nullable=False))}, "null"),
    "another type": ({"schema": schema_with(n=column("n", "long"))}, "is long, .* have integer"),
    "another type of a field": (
        {"schema": schema_with(place=place(X, column("y", "string")))},
        "'place.y' is string",
    ),
    "another type of elements": ({"schema": schema_with(sizes=sizes("long"))}, "sizes.element"),
    "keys that are not those which were widened": (
        {"schema": schema_with(tags=tags("long", change("integer", "long", "key")))},
        "tags.value",
    ),
    "another type of a partition column, although it was widened": (
        {
            "schema": schema_with(
                day=column("day", "long", **{TYPE_CHANGES: [change("integer", "long")]})
            )
        },
        "partition column 'day' is long",
    ),
    "a widening from yet another type": (
        {
            "schema": schema_with(
                n=column(
                    "n",
                    "double",
                    **{"delta.typeChanges": [{"fromType": "float", "toType": "double"}]},
                )
            )
        },
        "is double",
    ),
    "a dropped column": ({"schema": schema_with(n=None)}, "'n' .* not in the table any more"),
    "a dropped field": ({"schema": schema_with(place=place(X))}, "'place.y' .* any more"),
    "an invariant": (
        {"schema": schema_with(n=column("n", "integer", **{"delta.invariants": "{}"}))},
        "delta.invariants",
    ),
    "a new generated column": (
        {"schema": schema_with(g=column("g", "date", **{"delta.generationExpression": "x"}))},
        "delta.generationExpression",
    ),
    "a constraint": ({"configuration": {"delta.constraints.positive": "n > 0"}}, "positive"),
    "a constraint spelt otherwise": (
        {"configuration": {"Delta.Constraints.Positive": "n > 0"}},
        "Positive",
    ),
    "other partitions": ({"partitions": ()}, "partitioned by"),
}


@pytest.mark.parametrize("change", FITTING.values(), ids=FITTING)
def test_an_append_is_rebased_over(change):
    assert append_across(**change).version == 2


@pytest.mark.parametrize(("change", "told"), MISFITTING.values(), ids=MISFITTING)
def test_an_append_is_refused_after(change, told):
    with pytest.raises(sl.MetadataChangedError, match=told):
        append_across(**change)


MAPPED_BY_NAME = {
    "the names that there are": {"schema_string": schema_with(n=named("n", "integer", "n"))},
    "a column that was renamed": {"schema_string": schema_with(n=named("m", "integer", "n"))},
    "a column that was renamed, its name taken by another": {
        "schema_string": schema_with(
            n=named("was_n", "integer", "n"), m=named("n", "string", "col-2")
        )
    },
    "a partition column that was renamed": {
        "schema_string": schema_with(day=named("date", "integer", "day")),
        "partition_columns": ("date",),
    },
    "a column that was dropped": {"schema_string": schema_with(n=None)},
}


def misfits_under_mapping(mode, **changed):
    staged = Transaction(
        operation="WRITE",
        staged_schema=schema_with(),
        staged_partitions=("day",),
        is_blind_append=True,
    )
    metadata = Metadata("id", **{"partition_columns": ("day",), **changed})
    metadata = msgspec.structs.replace(metadata, configuration={COLUMN_MAPPING_MODE: mode})
    return misfits(staged, Protocol(2, 5), metadata)


@pytest.mark.parametrize("changed", MAPPED_BY_NAME.values(), ids=MAPPED_BY_NAME)
def test_files_fit_once_columns_are_mapped_by_name_with(changed):
    assert misfits_under_mapping("name", **changed) == []


def test_files_that_were_written_without_ids_do_not_fit_a_mapping_by_id():
    (told,) = misfits_under_mapping("id", schema_string=schema_with())
    assert "mapped by id" in told


def test_files_do_not_fit_a_table_without_its_partition_column():
    (told,) = misfits_under_mapping("name", schema_string=schema_with(day=None))
    assert "'day' is not in the table any more" in told


def test_a_dropped_column_whose_name_is_taken_by_a_type_that_files_do_not_have_is_no_misfit():
    reused = schema_with(n=named("n", "string", "col-2"))
    assert misfits_under_mapping("name", schema_string=reused) == []


def test_a_stager_that_knows_the_constraint_may_append():
    store = MemoryStore()
    table = TableBuilder(store, ManualClock()).build()
    constraint = {"delta.constraints.positive": "n > 0"}
    set_properties(table, constraint)
    stager = table.stager()
    set_properties(table, {**constraint, "team": "orders"})
    files = stager.stage(pa.table({"n": [1]}))
    assert table.commit_staged(files, staged_by=stager).version == 3


def set_properties(table, properties):
    head = table.log.refresh()
    changed = msgspec.structs.replace(head.metadata, configuration=properties)
    table.log.commit(Transaction(operation="SET", metadata=changed, read_version=head.version))
