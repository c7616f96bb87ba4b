from streamlake.cli.demo.delivery import Delivery
from streamlake.cli.demo.figures import Latency, Outage, bus, end_to_end


def delivery(delivered_ms, *latencies_ms):
    return Delivery(
        offset="{}",
        customers=["ann"] * len(latencies_ms),
        sequences=list(range(len(latencies_ms))),
        latencies_ms=list(latencies_ms),
        bus_latency_ms=7,
        delivered_ms=delivered_ms,
    )


def test_every_event_counts_once():
    assert end_to_end([delivery(100, 10, 20), delivery(200, 30)]).p50_ms == 20
    assert bus([delivery(100, 10, 20)]) == Latency(p50_ms=7, p99_ms=7)


def test_events_that_waited_for_an_outage_can_be_left_out():
    before, waited, after = delivery(100, 1), delivery(350, 200, 100), delivery(400, 3)
    outage = Outage(from_ms=200, to_ms=300)
    assert end_to_end([before, waited, after], without=[outage]) == end_to_end([before, after])


def test_of_nothing_there_is_no_latency():
    assert end_to_end([]) == Latency(p50_ms=None, p99_ms=None)
