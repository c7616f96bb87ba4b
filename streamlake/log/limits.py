"""The bounds of everything that reads or writes the log."""

from __future__ import annotations

from dataclasses import dataclass

from streamlake.protocol import MAX_JSON_DEPTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Named bounds; passing one is a LimitExceededError or the error that the field names."""

    commit_bytes: int = 256 * 2**20
    """The largest commit file that is decoded or written."""
    commit_actions: int = 2_000_000
    """The most actions, which is lines, in one commit."""
    action_bytes: int = 64 * 2**20
    """The largest single action of a commit."""
    json_depth: int = MAX_JSON_DEPTH
    """How deep the JSON of one action may nest."""
    commit_versions: int = 200
    """How many versions one commit tries, each after losing the one before, before it gives up."""
    missed_commits: int = 100_000
    """The most commits that are read to test a transaction which read the table before them."""
    commit_deadline_s: float = 120.0
    """How long one commit may take in all, from its first put; CommitUnknownError after it."""
    puts_per_version: int = 10
    """How often the same bytes are put at one version while its outcome is unknown."""
    backoff_first_s: float = 0.01
    """The longest first pause between tries; each further one may be twice as long."""
    backoff_max_s: float = 2.0
    """The longest pause between tries."""
    probe_versions: int = 4
    """How many winners in a row are probed one by one before the log is listed instead."""
    gap_wait_s: float = 2.0
    """How long a version that a listing leaves out is waited for before it counts as missing."""
    gap_probes: int = 8
    """How often it is looked for within that time."""
    clean_up_files: int = 100_000
    """The most files that one clean-up of the log removes; the rest is left to the next. No
    error."""
    clean_up_s: float = 5.0
    """How long a clean-up goes on that a checkpoint brought with it. No error."""
    checkpoint_actions: int = 500_000_000
    """The most actions of one file of a checkpoint."""
    checkpoint_block_bytes: int = 2 * 2**30
    """The most bytes that the block of a checkpoint's columns may take that is decoded in one step,
    and all actions of one kind that are no files and no tombstones."""
    checkpoint_column_bytes: int = 16 * 2**30
    """The most bytes that one column of a checkpoint may take when it is decoded whole."""
    checkpoint_footer_bytes: int = 64 * 2**20
    """The largest string in the footer of a checkpoint's file. Past it the checkpoint counts as
    corrupt: a garbled footer looks the same."""
    checkpoint_footer_elements: int = 10_000_000
    """The most elements of any list in it, likewise."""
    checkpoint_sidecars: int = 10_000
    """The most sidecars of one checkpoint."""
    listed_entries: int = 10_000_000
    """The most log entries of one listing."""
    lagging_versions: int = 100
    """How many versions that a listing leaves out are looked for by name. No error."""
    idle_polls_per_listing: int = 64
    """Of that many idle polls of a tail one is a listing, which notices a truncated log."""


DEFAULT_LIMITS = Limits()
