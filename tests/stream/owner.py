"""The program that the tests of two owners run: a sink that writes a number when it is told to.

Arguments: the table. Each line on stdin is a number to write, at the position of that number; each
line on stdout is what came of it: the version, or the name of the error.
"""

import sys

import pyarrow as pa

import streamlake as sl


def main(url: str) -> None:
    sink = sl.TableSink(url, app_id="owned")
    sink.open()
    print("open", flush=True)  # noqa: T201 -- that is its answer
    for line in sys.stdin:
        number = int(line)
        data = pa.table({"n": pa.array([number], pa.int64())})
        try:
            print(sink.write(sl.Batch(data=data, positions={"p/0": number})), flush=True)  # noqa: T201 -- that is its answer
        except sl.StreamlakeError as error:
            print(type(error).__name__, flush=True)  # noqa: T201 -- that is its answer
    sink.close()


if __name__ == "__main__":
    main(sys.argv[1])
