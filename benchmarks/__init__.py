"""Side-by-side measurements against peers, in one run on one machine; not part of the tests."""
