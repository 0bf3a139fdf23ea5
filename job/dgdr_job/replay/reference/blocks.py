"""The paged KV cache of one rank: blocks that are in use, kept for later, or free (vLLM and TensorRT-LLM)."""

from collections import deque


class Block:
    """One physical block. Without a key it is private to its request; with one, others may use it."""

    __slots__ = ("key", "users")

    def __init__(self) -> None:
        self.key: int | None = None
        self.users = 1


class BlockPool:
    """Blocks of equal size.

    A block that was computed in full gets a key and can be found by it. Two requests that compute the same content at
    once hold two blocks with one key; the one that got it first is found. A block with a key that nobody uses stays
    until room is needed: the one that was released longest ago goes first.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.free = blocks
        self.evictions = 0
        self.peak = 0
        self.changes: list[tuple[int, bool]] = []
        """Keys that became findable (True) or were lost (False) since this list was last emptied."""
        self._by_key: dict[int, deque[Block]] = {}
        self._idle: dict[Block, None] = {}

    @property
    def used(self) -> int:
        """Blocks that requests hold."""
        return self.blocks - self.free - len(self._idle)

    def find(self, keys: list[int]) -> list[Block]:
        """The blocks of the longest prefix of the keys that is here."""
        found = []
        for key in keys:
            if key not in self._by_key:
                break
            found.append(self._by_key[key][0])
        return found

    def take(self, hits: list[Block], fresh: int) -> list[Block] | None:
        """Use the hits and as many fresh blocks; None, and nothing changes, when there is no room."""
        evict = max(0, fresh - self.free)
        if evict > len(self._idle) - sum(block.users == 0 for block in hits):
            return None
        for block in hits:
            if block.users == 0:
                del self._idle[block]
            block.users += 1
        for _ in range(evict):
            self._evict()
        self.free -= fresh
        self.peak = max(self.peak, self.used)
        return [*hits, *(Block() for _ in range(fresh))]

    def publish(self, block: Block, key: int) -> None:
        """Let a private block be found by its key."""
        block.key = key
        same = self._by_key.setdefault(key, deque())
        same.append(block)
        if len(same) == 1:
            self.changes.append((key, True))

    def release(self, block: Block) -> None:
        """One user less; the last one leaves the block for later, or free when it is private."""
        block.users -= 1
        if block.users:
            return
        if block.key is None:
            self.free += 1
        else:
            self._idle[block] = None

    def _evict(self) -> None:
        block = next(iter(self._idle))
        del self._idle[block]
        assert block.key is not None
        same = self._by_key[block.key]
        same.remove(block)
        if not same:
            del self._by_key[block.key]
            self.changes.append((block.key, False))
        self.free += 1
        self.evictions += 1
