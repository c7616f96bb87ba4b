import msgspec
import pyarrow as pa

import streamlake as sl
from streamlake.cli.demo.delivery import Delivery, DeliveryLog, DeliveryReader
from streamlake.cli.demo.orders import Order, OrderBook, identify

OFFSET = sl.Offset(reservoir_id="t", reservoir_version=3)


def delivery(*sequences):
    return Delivery(
        offset=OFFSET.to_json(), customers=["ann"] * len(sequences), sequences=list(sequences),
        latencies_ms=[1] * len(sequences), bus_latency_ms=1, delivered_ms=5,
    )  # fmt: skip


def test_a_delivery_and_its_offset_are_read_back(tmp_path):
    DeliveryLog(tmp_path / "log").write(delivery(1, 2))
    assert list(DeliveryReader(tmp_path / "log").new()) == [delivery(1, 2)]
    assert DeliveryLog(tmp_path / "log").offset == OFFSET


def test_a_delivery_torn_by_a_kill_never_happened(tmp_path):
    path = tmp_path / "log"
    DeliveryLog(path).write(delivery(1))
    with path.open("ab") as file:
        file.write(msgspec.json.encode(delivery(2))[:-3])
    again = DeliveryLog(path)
    again.write(delivery(3))
    assert [each.sequences for each in DeliveryReader(path).new()] == [[1], [3]]


def test_a_log_that_is_new_has_no_offset(tmp_path):
    assert DeliveryLog(tmp_path / "log").offset is None


def test_each_delivery_is_read_once(tmp_path):
    log, reader = DeliveryLog(tmp_path / "log"), DeliveryReader(tmp_path / "log")
    log.write(delivery(1))
    assert len(list(reader.new())) == 1
    log.write(delivery(2))
    assert [each.sequences for each in reader.new()] == [[2]]


def test_events_are_known_by_customer_and_number():
    order = Order(customer="ann", sequence=7, item="tea", amount=1.5, created_ms=0)
    values = pa.chunked_array([[msgspec.json.encode(order)]] * 2, pa.binary())
    assert identify(values).to_pylist() == [{"customer": "ann", "sequence": 7}] * 2
    assert identify(values.slice(0, 0)).num_rows == 0


def test_each_customers_orders_are_numbered_from_one():
    book = OrderBook(sl.SystemClock())
    orders = [book.next_order() for _ in range(2000)]
    for customer, last in book.placed.items():
        assert [o.sequence for o in orders if o.customer == customer] == list(range(1, last + 1))
