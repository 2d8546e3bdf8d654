"""An item as it is shown: a molecule as SVG, a text as one clean line.

Owns pictures of items. Not about figures of measurements (`report`) or about reading structures (`molecules`).
"""

from bridgehead.depict.item import has_pictures, picture_of
from bridgehead.depict.molecule import MAX_DRAWN, molecule_svg
from bridgehead.depict.text import shown_text

__all__ = ["MAX_DRAWN", "has_pictures", "molecule_svg", "picture_of", "shown_text"]
