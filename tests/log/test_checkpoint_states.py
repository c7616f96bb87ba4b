"""Whatever the log says: after a checkpoint of any form the table is the same."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import int64s, maybe_int64s, nullable_strings, set_transactions, text
from streamlake.log import Limits
from streamlake.log.checkpoint.writer import write_checkpoint
from streamlake.log.snapshot import load_state
from streamlake.protocol import (
    AddFile,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    commit_path,
    encode_actions,
)
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock

LATER_MS = 2**62
vectors = st.none() | st.builds(
    DeletionVector,
    storage_type=st.sampled_from("uip"),
    path_or_inline_dv=st.sampled_from(["a", "b"]),
    size_in_bytes=st.integers(0, 2**31 - 1),
    cardinality=int64s,
    offset=st.none() | st.integers(0, 3),
)
paths = st.sampled_from(["a", "b", "%61", "./b", "c%20d", "x=%2525/e", "ä"])
adds = st.builds(
    AddFile,
    path=paths,
    partition_values=nullable_strings,
    size=st.integers(0, 2**40),
    modification_time=int64s,
    data_change=st.booleans(),
    stats=st.none() | text,
    tags=st.none() | nullable_strings,
    deletion_vector=vectors,
    base_row_id=maybe_int64s,
    default_row_commit_version=maybe_int64s,
    clustering_provider=st.none() | text,
)
removes = st.builds(
    RemoveFile,
    path=paths,
    data_change=st.booleans(),
    deletion_timestamp=st.just(LATER_MS),
    extended_file_metadata=st.none() | st.booleans(),
    partition_values=st.none() | nullable_strings,
    size=maybe_int64s,
    deletion_vector=vectors,
)
domains = st.builds(
    DomainMetadata, domain=st.sampled_from("de"), configuration=text, removed=st.booleans()
)
commits = st.lists(
    st.lists(adds | removes | domains | set_transactions, min_size=1, max_size=4),
    min_size=1,
    max_size=5,
)
configurations = st.fixed_dictionaries(
    {}, optional={"delta.checkpointPolicy": st.just("v2"), "owner": text}
)
metadatas = st.builds(
    Metadata,
    id=text,
    schema_string=st.just('{"type":"struct","fields":[]}'),
    partition_columns=st.lists(text, max_size=2).map(tuple),
    configuration=configurations,
    created_time=maybe_int64s,
    name=st.none() | text,
    description=st.none() | text,
)
PROTOCOL = Protocol(3, 7, ("v2Checkpoint",), ("domainMetadata", "v2Checkpoint"))


def state_of(store):
    state, segment = load_state(store, limits=Limits())
    files = [msgspec.structs.replace(add, data_change=False) for add in state.files()]
    tombstones = state.tombstones().to_pylist()
    for tombstone in tombstones:
        tombstone["dataChange"] = False
    domains_left = {name: d for name, d in state.domains.items() if not d.removed}
    told = (state.version, state.protocol, state.metadata, state.markers, domains_left)
    return (*told, files, sorted(tombstones, key=repr)), state, segment


@settings(max_examples=60)
@given(metadatas, commits, st.integers(1, 3), st.integers(1, 2))
def test_a_state_is_the_same_from_its_checkpoint(metadata, listed, block_rows, per_sidecar):
    store = MemoryStore()
    for version, actions in enumerate([[PROTOCOL, metadata], *listed]):
        store.put(commit_path(version), encode_actions(actions))
    before, state, _ = state_of(store)
    write_checkpoint(
        store,
        state,
        clock=ManualClock(),
        block_rows=block_rows,
        blocks_per_sidecar=per_sidecar,
    )
    after, _, segment = state_of(store)
    assert segment.checkpoint_versions[0] == len(listed)
    assert after == before
    for version in range(len(listed) + 1):
        store.delete(commit_path(version))
    assert state_of(store)[0] == before
