"""Action reconciliation: what a table holds once commits have been applied in order."""

from __future__ import annotations

from collections.abc import Iterable

from streamlake.errors import CorruptTableError
from streamlake.log.commit import Commit
from streamlake.protocol import (
    Action,
    AddFile,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    canonical_path,
)


def canonical_key(key: FileKey, *, root_url: str) -> FileKey:
    """One spelling of a logical file, for comparing: a path may be encoded, absolute, relative."""
    return canonical_path(key[0], root_url=root_url), key[1]


class Replay:
    """The state of a table while actions are applied (PROTOCOL.md, "Action Reconciliation").

    The latest protocol, metadata, marker by app_id and domain win; an add or a remove replaces what
    was known of the same logical file.
    """

    def __init__(self, root_url: str) -> None:
        self.version = -1
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.markers: dict[str, SetTransaction] = {}
        self.domains: dict[str, DomainMetadata] = {}
        self.files: dict[FileKey, AddFile] = {}
        self.tombstones: dict[FileKey, RemoveFile] = {}
        self.checkpoint_actions = 0
        """Actions of the checkpoint that it began with; not all may have been applied."""
        self._root_url = root_url

    def apply(self, commit: Commit) -> None:
        """Apply the next commit."""
        self.apply_actions(commit.actions)
        self.version = commit.version

    def apply_actions(self, actions: Iterable[Action]) -> None:
        """Apply actions of one commit or checkpoint: removes first, for paths may be re-added."""
        adds: list[AddFile] = []
        for action in actions:
            match action:
                case AddFile():
                    adds.append(action)
                case RemoveFile():
                    key = self._canonical(action.key)
                    self.files.pop(key, None)
                    self.tombstones[key] = action
                case SetTransaction():
                    self.markers[action.app_id] = action
                case Metadata():
                    self.metadata = action
                case Protocol():
                    self.protocol = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case _:
                    pass
        for add in adds:
            key = self._canonical(add.key)
            self.tombstones.pop(key, None)
            self.files[key] = add

    def checked(self) -> tuple[Protocol, Metadata]:
        """The protocol and metadata, which every table has.

        Raises:
            CorruptTableError: The log holds none.
        """
        if self.protocol is None or self.metadata is None:
            missing = "protocol" if self.protocol is None else "metaData"
            raise CorruptTableError(
                f"The log has no {missing} action.",
                where=self._root_url,
                found=f"version {self.version} without one",
                remedy="The log is damaged or was written by a faulty writer; restore its files.",
            )
        return self.protocol, self.metadata

    def holds(self, key: FileKey) -> bool:
        """Whether the logical file is in the table."""
        return self._canonical(key) in self.files

    def _canonical(self, key: FileKey) -> FileKey:
        return canonical_key(key, root_url=self._root_url)
