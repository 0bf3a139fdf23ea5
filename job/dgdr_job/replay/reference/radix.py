"""The KV cache of one SGLang rank: pages, and a tree of what they hold."""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Node:
    """An edge of the tree with its pages. ``locks`` counts the requests that use it or something below it."""

    keys: list[int]
    parent: "Node | None"
    children: "dict[int, Node]" = field(default_factory=dict)
    locks: int = 0
    touched: int = 0


class RadixCache:
    """Pages are free, or in the tree, or private to a request (counted, not listed).

    What nobody uses stays in the tree. Room is made at its leaves: the one that was touched longest ago goes first, its
    last pages before its first.
    """

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.free = pages
        self.evictable = 0
        self.evictions = 0
        self.peak = 0
        self.changes: list[tuple[int, bool]] = []
        """Keys that became findable (True) or were lost (False) since this list was last emptied."""
        self.root = Node(keys=[], parent=None)
        self._clock = 0
        self._leaves: dict[Node, None] = {}
        """Leaves that nobody uses."""

    # -- looking up

    def match(self, keys: list[int]) -> int:
        """Pages of the longest prefix that is here; touches nothing."""
        node, matched = self.root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])):
            common = _common(child.keys, keys, matched)
            matched += common
            if common < len(child.keys):
                break
            node = child
        return matched

    def match_and_lock(self, keys: list[int]) -> tuple[int, Node]:
        """The same, and its last node, which is kept from now on. A node that is used in part is split."""
        now = self._now()
        node, matched = self.root, 0
        while matched < len(keys) and (child := node.children.get(keys[matched])):
            common = _common(child.keys, keys, matched)
            matched += common
            if common < len(child.keys):
                node = self._split(child, common)
                break
            child.touched = now
            node = child
        self.lock(node)
        return matched, node

    # -- using and leaving

    def lock(self, node: Node) -> None:
        """Keep a node and all above it."""
        while node.parent is not None:
            if node.locks == 0:
                self.evictable -= len(node.keys)
                self._leaves.pop(node, None)
            node.locks += 1
            node = node.parent

    def unlock(self, node: Node) -> None:
        """One user less of a node and of all above it."""
        while node.parent is not None:
            node.locks -= 1
            if node.locks == 0:
                self.evictable += len(node.keys)
                self._leaf(node)
            node = node.parent

    def make_room(self, pages: int) -> bool:
        """Free as many pages; False, and nothing changes, when that many cannot be had."""
        if pages > self.free + self.evictable:
            return False
        self.evict(pages - self.free)
        return True

    def take(self, pages: int) -> None:
        """Pages leave the free ones; `make_room` came before."""
        self.free -= pages
        self.peak = max(self.peak, self.pages - self.free - self.evictable)

    def insert(self, start: Node, keys: list[int]) -> tuple[int, Node]:
        """Put pages under a node.

        Returns how many of them were there already (the new ones are to be freed), and the last node.
        """
        if not keys:
            return 0, start
        now = self._now()
        above: Node | None = start
        while above is not None:
            above.touched = now
            above = above.parent
        node, at = start, 0
        while at < len(keys):
            own = node.locks == 0 or (node is start and node.locks == 1)
            if node is not self.root and not node.children and own:
                self._extend(node, keys[at:], now)
                return at, node
            child = node.children.get(keys[at])
            if child is None:
                return at, self._add_child(node, keys[at:])
            common = _common(child.keys, keys, at)
            at += common
            if common < len(child.keys):
                node = self._split(child, common)
                return (at, self._add_child(node, keys[at:])) if at < len(keys) else (at, node)
            node = child
            node.touched = now
        return at, node

    # -- inside

    def _now(self) -> int:
        self._clock += 1
        return self._clock

    def _leaf(self, node: Node) -> None:
        if node is not self.root and node.locks == 0 and not node.children:
            self._leaves[node] = None

    def _extend(self, node: Node, keys: list[int], now: int) -> None:
        node.keys += keys
        node.touched = now
        if node.locks == 0:
            self.evictable += len(keys)
        self.changes += [(key, True) for key in keys]

    def _add_child(self, parent: Node, keys: list[int]) -> Node:
        child = Node(keys=list(keys), parent=parent, touched=self._now())
        parent.children[keys[0]] = child
        self._leaves.pop(parent, None)
        self.evictable += len(keys)
        self._leaf(child)
        self.changes += [(key, True) for key in keys]
        return child

    def _split(self, child: Node, at: int) -> Node:
        assert child.parent is not None
        upper = Node(keys=child.keys[:at], parent=child.parent, locks=child.locks, touched=child.touched)
        child.parent.children[upper.keys[0]] = upper
        child.keys = child.keys[at:]
        child.parent = upper
        upper.children[child.keys[0]] = child
        return upper

    def evict(self, pages: int) -> None:
        """Free as many pages of those that nobody uses, or all of them."""
        while pages > 0 and self._leaves:
            leaf = min(self._leaves, key=lambda node: node.touched)
            gone = min(pages, len(leaf.keys))
            self.changes += [(key, False) for key in leaf.keys[len(leaf.keys) - gone :]]
            first = leaf.keys[0]
            del leaf.keys[len(leaf.keys) - gone :]
            pages -= gone
            self.evictable -= gone
            self.free += gone
            self.evictions += gone
            if not leaf.keys:
                assert leaf.parent is not None
                del self._leaves[leaf]
                del leaf.parent.children[first]
                self._leaf(leaf.parent)


def _common(edge: list[int], keys: list[int], at: int) -> int:
    count = 0
    for mine, other in zip(edge, keys[at : at + len(edge)], strict=False):
        if mine != other:
            break
        count += 1
    return count
