"""Pictures of items, kept as long as there is room for them.

A picture belongs to the text that is drawn, so one that is kept is right whatever happens to the index. Not about
drawing (`depict`).
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

Draw = Callable[[str, str], Awaitable[str | None]]


class Pictures:
    """The last `most` pictures that `draw(item, kind)` made: SVG, or None where an item has none."""

    def __init__(self, draw: Draw, most: int) -> None:
        self._draw, self._most = draw, most
        self._kept: OrderedDict[tuple[str, str], tuple[bytes, str] | None] = OrderedDict()

    async def picture(self, item: str, kind: str) -> tuple[bytes, str] | None:
        """Return the SVG of an item and a name of its content (ETag), or None where it cannot be drawn."""
        key = (item, kind)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        svg = await self._draw(item, kind)
        found = None
        if svg is not None:
            data = svg.encode()
            found = (data, f'"{hashlib.sha256(data).hexdigest()[:24]}"')
        self._kept[key] = found
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return found
