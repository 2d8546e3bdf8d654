"""Items of an index in one SQLite file: what they are, what they are called, and what was added or removed since.

The file is the truth of an index: vectors that were built with it are a base, and the rows that came later lie here
until the index is compacted. Owns the tables, how they are written and what is looked up in them; vectors are in
`vectors`, who may read and write when is in `open` and `writer`.
"""

from bridgehead.index.items.content import content_hash, copy_store
from bridgehead.index.items.fresh import write_store
from bridgehead.index.items.lookup import ItemLookup
from bridgehead.index.items.records import Item, WordHit, item_hash

__all__ = ["Item", "ItemLookup", "WordHit", "content_hash", "copy_store", "item_hash", "write_store"]
