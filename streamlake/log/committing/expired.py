"""A commit that took so long that nobody may ever read it."""

from __future__ import annotations

from streamlake.errors import CommitUnknownError, StreamlakeError
from streamlake.log.commit import Commit
from streamlake.log.limits import Limits
from streamlake.log.snapshot import load_state
from streamlake.storage import ObjectStore


def check_not_cleaned_up(store: ObjectStore, commit: Commit, token: str, *, limits: Limits) -> None:
    """A put succeeds also at a version that log clean-up has removed, where nobody reads it.

    Raises:
        CommitUnknownError: The version lies below a checkpoint that does not know the commit.
    """
    try:
        state, segment = load_state(store, limits=limits)
    except (StreamlakeError, OSError) as error:
        raise _perhaps_cleaned_up(
            store, commit, token, f"the log can't be read: {error}"
        ) from error
    if commit.version > max(segment.checkpoint_versions, default=-1):
        return
    marked = any(state.markers.get(app) == m for app, m in commit.markers.items())
    if marked or state.held(add.key for add in commit.adds):
        return
    found = f"the newest version is {segment.version}, and it does not hold this commit"
    raise _perhaps_cleaned_up(store, commit, token, found)


def _perhaps_cleaned_up(
    store: ObjectStore, commit: Commit, token: str, found: str
) -> CommitUnknownError:
    return CommitUnknownError(
        "The commit took so long that the log may have been cleaned up past its version.",
        token=token,
        version=commit.version,
        where=store.url,
        found=found,
        remedy="Open the table again and append again with the same marker.",
    )
