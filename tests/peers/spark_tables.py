"""Tables that Delta on Spark makes, one a feature or a state of the log; ``{t}`` is the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TYPES = """b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f32 FLOAT, f64 DOUBLE,
d1 DECIMAL(9, 2), d2 DECIMAL(18, 6), d3 DECIMAL(38, 10), s STRING, bin BINARY, day DATE,
at TIMESTAMP"""
ROWS = """(true, 127Y, 32767S, 2147483647, 9223372036854775807, 1.5F, 2.5D, 1234567.89BD,
123456789012.123456BD, 1234567890123456789012345678.0123456789BD, 'ünï / %41 ''x''', X'00FF',
DATE'2024-02-29', TIMESTAMP'2024-02-29 12:34:56.123456Z'),
(false, -128Y, -32768S, -2147483648, -9223372036854775808, FLOAT('NaN'), DOUBLE('-Infinity'),
-1BD, -0.000001BD, -0.0000000001BD, ' ', X'', DATE'1970-01-01',
TIMESTAMP'1969-12-31 23:59:59.999999Z'),
(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTable:
    """How a table is made, and what may be expected of reading it."""

    name: str
    script: tuple[str, ...]
    refused: str | None = None
    """Where it can't be read: what the error names."""


def made(name: str, *script: str, refused: str | None = None) -> SparkTable:
    return SparkTable(name=name, script=script, refused=refused)


def create(columns: str, *, extra: str = "", **properties: Any) -> str:
    """CREATE TABLE; properties are Delta's, with "_" for "."."""
    pairs = ", ".join(f"'delta.{k.replace('_', '.')}' = '{v}'" for k, v in properties.items())
    told = f" TBLPROPERTIES ({pairs})" if pairs else ""
    return f"CREATE TABLE {{t}} ({columns}) USING delta {extra}{told}"


def insert(first: int, count: int, rows: str = "id, CONCAT('v', id)") -> str:
    return f"INSERT INTO {{t}} SELECT {rows} FROM range({first}, {first + count}, 1, 1)"


PLAIN = "id BIGINT, v STRING"
VECTORS = {"enableDeletionVectors": "true"}
MAPPED = {"columnMapping_mode": "name"}
WIDENING = {"enableTypeWidening": "true"}
NESTED = """id BIGINT, s STRUCT<a: INT, b: STRUCT<c: STRING, d: ARRAY<STRUCT<e: INT>>>>,
m MAP<STRING, STRUCT<k: INT>>, l ARRAY<ARRAY<STRING>>"""
NESTED_ROWS = """id, NAMED_STRUCT('a', INT(id), 'b', NAMED_STRUCT('c', STRING(id), 'd',
ARRAY(NAMED_STRUCT('e', INT(id)), NULL))), MAP('x', NAMED_STRUCT('k', INT(id)), 'y', NULL),
ARRAY(ARRAY(STRING(id), NULL), NULL, ARRAY())"""

BASICS = [
    made("empty", create(PLAIN)),
    made("every type", create(TYPES), f"INSERT INTO {{t}} VALUES {ROWS}"),
    made(
        "timestamps as microseconds",
        "SET spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS",
        create(TYPES),
        f"INSERT INTO {{t}} VALUES {ROWS}",
    ),
    made(
        "first and last moments",
        create("d DATE, at TIMESTAMP, there TIMESTAMP_NTZ"),
        """INSERT INTO {t} VALUES
        (DATE'0001-01-01', TIMESTAMP'1900-01-01 00:00:00Z', TIMESTAMP_NTZ'0001-01-01 00:00:00'),
        (DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999Z',
        TIMESTAMP_NTZ'9999-12-31 23:59:59.999999')""",
    ),
    made(
        "dates of the calendar before 1582",
        "SET spark.sql.parquet.datetimeRebaseModeInWrite = LEGACY",
        "SET spark.sql.parquet.int96RebaseModeInWrite = LEGACY",
        create("d DATE, at TIMESTAMP"),
        "INSERT INTO {t} VALUES (DATE'1000-02-03', TIMESTAMP'1500-01-01 00:00:00Z')",
        refused="calendar before 1582",
    ),
    made(
        "a shallow clone",
        "CREATE TABLE delta.`{path}-source` USING delta AS SELECT id FROM range(3)",
        "CREATE TABLE {t} SHALLOW CLONE delta.`{path}-source`",
        refused="outside of the table",
    ),
    made("nested", create(NESTED), insert(0, 5, NESTED_ROWS)),
    made(
        "nulls in nested values",
        create(NESTED),
        "INSERT INTO {t} VALUES (1, NULL, NULL, NULL), (2, STRUCT(NULL, NULL), MAP(), ARRAY())",
    ),
    made(
        "char and varchar",
        create("c CHAR(1), v VARCHAR(7)"),  # Spark alone pads what is shorter, when it reads it
        "INSERT INTO {t} VALUES ('a', 'b'), (NULL, NULL)",
    ),
    made(
        "rewritten and vacuumed",
        create(PLAIN),
        insert(0, 10),
        insert(10, 10),
        "UPDATE {t} SET v = 'u' WHERE id % 3 = 0",
        "DELETE FROM {t} WHERE id > 15",
        "OPTIMIZE {t}",
        "VACUUM {t} RETAIN 0 HOURS",
    ),
    made(
        "restored",
        create(PLAIN),
        insert(0, 5),
        "DELETE FROM {t}",
        insert(5, 5),
        "RESTORE TABLE {t} TO VERSION AS OF 1",
    ),
    made(
        "overwritten",
        create(PLAIN),
        insert(0, 5),
        "INSERT OVERWRITE {t} VALUES (7, 'x')",
        "INSERT INTO {t} REPLACE WHERE id = 7 VALUES (7, 'y')",
    ),
    made(
        "replaced by another schema",
        "CREATE TABLE replaced (id BIGINT) USING delta LOCATION '{path}'",
        "INSERT INTO replaced VALUES (1)",
        "CREATE OR REPLACE TABLE replaced (v INT, w STRING) USING delta PARTITIONED BY (w) "
        "LOCATION '{path}'",
        "INSERT INTO {t} VALUES (1, 'x')",
    ),
    made(
        "evolved",
        create("id BIGINT, s STRUCT<a: INT>"),
        "INSERT INTO {t} VALUES (1, STRUCT(1))",
        "ALTER TABLE {t} ADD COLUMNS (first STRING FIRST, s.b STRING, l ARRAY<STRUCT<x: INT>>)",
        "INSERT INTO {t} VALUES ('f', 2, STRUCT(2, 'b'), ARRAY(STRUCT(1)))",
        "ALTER TABLE {t} ADD COLUMNS (l.element.y INT)",
        "ALTER TABLE {t} ALTER COLUMN id FIRST",
        "INSERT INTO {t} VALUES (3, 'g', STRUCT(3, 'c'), ARRAY(STRUCT(1, 2)))",
    ),
    made(
        "converted from Parquet",
        "CREATE TABLE parquet_source USING parquet PARTITIONED BY (p) LOCATION '{path}' "
        "AS SELECT id, id % 3 AS p FROM range(9)",
        "DROP TABLE parquet_source",
        "CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p BIGINT)",
        "INSERT INTO {t} VALUES (9, NULL)",
    ),
]

PARTITIONED = [
    made(
        f"partitioned by {kind}",
        create(f"id BIGINT, p {kind}", extra="PARTITIONED BY (p)"),
        f"INSERT INTO {{t}} VALUES {', '.join(f'({i}, {v})' for i, v in enumerate(values))}",
        "INSERT INTO {t} VALUES (100, NULL)",
    )
    for kind, values in {
        "BOOLEAN": ("true", "false"),
        "TINYINT": ("127Y", "-128Y"),
        "BIGINT": ("9223372036854775807", "-9223372036854775808"),
        "FLOAT": ("1.5F", "FLOAT('NaN')", "FLOAT('-Infinity')", "1e-20F"),
        "DOUBLE": ("0.1D", "-0.0D", "1e300D", "DOUBLE('Infinity')"),
        "DECIMAL(20, 5)": ("1.5BD", "-0.00001BD"),
        "STRING": ("''", "' '", "'a/b=c %41'", "'ünï'", "'__HIVE_DEFAULT_PARTITION__x'", "'null'"),
        "BINARY": ("X'41'", "X'C3A9'"),
        "DATE": ("DATE'2024-02-29'", "DATE'0001-01-01'"),
        "TIMESTAMP": ("TIMESTAMP'2024-02-29 12:34:56.123456Z'", "TIMESTAMP'1999-01-01 00:00:00Z'"),
        "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ'2024-02-29 12:34:56.123456'",),
    }.items()
] + [
    made(
        "partition timestamps in the session's zone",
        "SET spark.databricks.delta.write.utcTimestampPartitionValues = false",
        create("id BIGINT, p TIMESTAMP", extra="PARTITIONED BY (p)"),
        "INSERT INTO {t} VALUES (1, TIMESTAMP'2024-02-29 12:34:56.123Z')",
    ),
    made(
        "partition columns in the data files",
        create(
            "id BIGINT, p STRING",
            extra="PARTITIONED BY (p)",
            feature_materializePartitionColumns="supported",
        ),
        insert(0, 4, "id, STRING(id % 2)"),
    ),
]

VECTORED = [
    made(
        "deletion vectors",
        create(PLAIN, **VECTORS),
        insert(0, 1000),
        insert(1000, 1000),
        "DELETE FROM {t} WHERE id % 7 = 3",
        "DELETE FROM {t} WHERE id < 20",
        "UPDATE {t} SET v = 'u' WHERE id % 100 = 50",
    ),
    made(
        "a deletion vector of many containers",
        create("id BIGINT", **VECTORS),
        insert(0, 300_000, "id"),
        "DELETE FROM {t} WHERE id % 3 = 0 OR id BETWEEN 70000 AND 140000",
    ),
    made(
        "deletion vectors and partitions",
        create("id BIGINT, p STRING", extra="PARTITIONED BY (p)", **VECTORS),
        insert(0, 60, "id, IF(id % 3 = 2, NULL, CONCAT('a b/', id % 3))"),
        "DELETE FROM {t} WHERE id % 5 = 0",
        "MERGE INTO {t} USING (SELECT id FROM range(50, 70)) AS n ON {t}.id = n.id "
        "WHEN MATCHED THEN UPDATE SET p = 'merged' WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
    ),
    made(
        "deletion vectors purged",
        create(PLAIN, **VECTORS),
        insert(0, 50),
        "DELETE FROM {t} WHERE id % 2 = 0",
        "REORG TABLE {t} APPLY (PURGE)",
        "DELETE FROM {t} WHERE id % 5 = 0",
    ),
    made(
        "every row deleted by a vector",
        create(PLAIN, **VECTORS),
        insert(0, 50),
        "DELETE FROM {t} WHERE id < 49",
        "DELETE FROM {t} WHERE v = 'v49'",
    ),
    made(
        "deletion vectors behind a V2 checkpoint",
        create(PLAIN, checkpointPolicy="v2", checkpointInterval=2, **VECTORS),
        insert(0, 50),
        "DELETE FROM {t} WHERE id % 2 = 0",
        insert(50, 50),
        "DELETE FROM {t} WHERE id % 3 = 0",
    ),
]

MAPPINGS = [
    made(
        f"columns mapped by {mode}",
        create(NESTED, columnMapping_mode=mode),
        insert(0, 5, NESTED_ROWS),
        "ALTER TABLE {t} RENAME COLUMN s.b.c TO `c, renamed`",
        "ALTER TABLE {t} RENAME COLUMN m TO `a map`",
        insert(5, 5, NESTED_ROWS),
        "ALTER TABLE {t} DROP COLUMN l",
        "ALTER TABLE {t} ADD COLUMN l STRING",
        "INSERT INTO {t} (id, l) VALUES (20, 'new')",
    )
    for mode in ("name", "id")
] + [
    made(
        "mapped after the fact",
        create(PLAIN),
        insert(0, 5),
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
        "ALTER TABLE {t} RENAME COLUMN id TO v2",
        "ALTER TABLE {t} RENAME COLUMN v TO id",
        "ALTER TABLE {t} RENAME COLUMN v2 TO v",
        "INSERT INTO {t} VALUES (9, 'x')",
    ),
    made(
        "mapped partition columns and vectors",
        create("id BIGINT, `p q` STRING", extra="PARTITIONED BY (`p q`)", **MAPPED, **VECTORS),
        insert(0, 30, "id, STRING(id % 2)"),
        "ALTER TABLE {t} RENAME COLUMN `p q` TO r",
        "DELETE FROM {t} WHERE id % 4 = 1",
        insert(30, 5, "id, NULL"),
    ),
    made(
        "mapped, with a checkpoint of structs",
        create(
            "id BIGINT, p DATE, `odd name` STRING",
            extra="PARTITIONED BY (p)",
            checkpoint_writeStatsAsStruct="true",
            checkpoint_writeStatsAsJson="false",
            checkpointInterval=2,
            **MAPPED,
        ),
        *[insert(n, 3, f"id, DATE'2024-01-0{n + 1}', 'x'") for n in range(3)],
    ),
]

LOGS = [
    made(
        "a multi-part checkpoint",
        "SET spark.databricks.delta.checkpoint.partSize = 2",
        create(PLAIN, checkpointInterval=6),
        *[insert(n * 5, 5) for n in range(7)],
    ),
    made(
        "a V2 checkpoint with sidecars",
        "SET spark.databricks.delta.checkpoint.partSize = 2",
        create(PLAIN, checkpointInterval=6, checkpointPolicy="v2"),
        *[insert(n * 5, 5) for n in range(7)],
    ),
    made(
        "a V2 checkpoint in JSON",
        "SET spark.databricks.delta.checkpointV2.topLevelFileFormat = json",
        create(PLAIN, checkpointInterval=3, checkpointPolicy="v2"),
        *[insert(n * 5, 5) for n in range(4)],
    ),
    made(
        "in-commit timestamps",
        create(PLAIN, enableInCommitTimestamps="true"),
        insert(0, 5),
        insert(5, 5),
    ),
    made(
        "in-commit timestamps later",
        create(PLAIN),
        insert(0, 5),
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        insert(5, 5),
    ),
    made(
        "features that are not used",
        create(
            PLAIN,
            **{
                f"feature_{name}": "supported"
                for name in (
                    "allowColumnDefaults",
                    "checkpointProtection",
                    "columnMapping",
                    "deletionVectors",
                    "domainMetadata",
                    "inCommitTimestamp",
                    "rowTracking",
                    "timestampNtz",
                    "typeWidening",
                    "vacuumProtocolCheck",
                    "variantType",
                )
            },
        ),
        insert(0, 5),
    ),
]

WIDENED = [
    made(
        f"widened from {before} to {after}",
        create(f"id BIGINT, w {before}", feature_timestampNtz="supported", **WIDENING),
        f"INSERT INTO {{t}} VALUES (1, {value}), (2, NULL)",
        f"ALTER TABLE {{t}} ALTER COLUMN w TYPE {after}",
        f"INSERT INTO {{t}} VALUES (3, CAST({value} AS {after}))",
    )
    for before, after, value in (
        ("TINYINT", "BIGINT", "-128Y"),
        ("SMALLINT", "DOUBLE", "12345S"),
        ("INT", "DECIMAL(12, 2)", "2147483647"),
        ("BIGINT", "DECIMAL(20, 0)", "9223372036854775807"),
        ("FLOAT", "DOUBLE", "0.1F"),
        ("DECIMAL(5, 2)", "DECIMAL(20, 6)", "123.45BD"),
        ("DATE", "TIMESTAMP_NTZ", "DATE'2024-02-29'"),
    )
] + [
    made(
        "widened within",
        create("id BIGINT, s STRUCT<a: SMALLINT>, l ARRAY<TINYINT>, m MAP<INT, FLOAT>", **WIDENING),
        "INSERT INTO {t} VALUES (1, STRUCT(7S), ARRAY(1Y, NULL), MAP(1, 0.5F))",
        "ALTER TABLE {t} ALTER COLUMN s.a TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN l.element TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN m.key TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN m.value TYPE DOUBLE",
        "INSERT INTO {t} VALUES (2, STRUCT(70000), ARRAY(70000), MAP(9223372036854775807, 1D))",
    ),
    made(
        "a partition column widened",
        create("id BIGINT, p SMALLINT", extra="PARTITIONED BY (p)", **WIDENING),
        "INSERT INTO {t} VALUES (1, 7S), (2, NULL)",
        "ALTER TABLE {t} ALTER COLUMN p TYPE INT",
        "INSERT INTO {t} VALUES (3, 70000)",
    ),
]

COLUMNS = [
    made(
        "generated columns",
        create(
            "id BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))",
            extra="PARTITIONED BY (day)",
        ),
        "INSERT INTO {t} (id, at) VALUES (1, TIMESTAMP'2024-02-29 12:00:00Z'), (2, NULL)",
    ),
    made(
        "identity columns",
        create("k BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 3), v STRING"),
        "INSERT INTO {t} (v) VALUES ('a'), ('b')",
        "INSERT INTO {t} (v) VALUES ('c')",
    ),
    made(
        "column defaults",
        create("id BIGINT, v STRING DEFAULT 'none'", feature_allowColumnDefaults="supported"),
        "INSERT INTO {t} (id) VALUES (1)",
        "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 'other'",
        "INSERT INTO {t} (id) VALUES (2)",
    ),
    made(
        "constraints",
        create("id BIGINT NOT NULL, v STRING"),
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",
        insert(0, 3),
    ),
    made(
        "row tracking",
        create(PLAIN, enableRowTracking="true", **VECTORS),
        insert(0, 10),
        "UPDATE {t} SET v = 'u' WHERE id = 3",
        "OPTIMIZE {t}",
        "DELETE FROM {t} WHERE id = 4",
    ),
    made(
        "clustered",
        create(PLAIN, extra="CLUSTER BY (id)"),
        insert(0, 10),
        insert(10, 10),
        "OPTIMIZE {t}",
    ),
    made(
        "a change data feed",
        create(PLAIN, enableChangeDataFeed="true"),
        insert(0, 10),
        "UPDATE {t} SET v = 'u' WHERE id = 3",
        "DELETE FROM {t} WHERE id = 4",
    ),
    made(
        "Iceberg compatible",
        create(PLAIN, enableIcebergCompatV2="true", **MAPPED),
        insert(0, 10),
    ),
    made("append only", create(PLAIN, appendOnly="true"), insert(0, 10)),
    made(
        "variants",
        create("id BIGINT, v VARIANT, l ARRAY<VARIANT>"),
        """INSERT INTO {t}
        SELECT 1, PARSE_JSON('{{"a": [1, "x", null]}}'), ARRAY(PARSE_JSON('1'))""",
        "INSERT INTO {t} SELECT 2, PARSE_JSON('null'), ARRAY()",
    ),
]

SPARK_TABLES = [
    *BASICS,
    *PARTITIONED,
    *VECTORED,
    *MAPPINGS,
    *LOGS,
    *WIDENED,
    *COLUMNS,
]
