"""From raw items to rows: the encoders, their cache and the spec that names them.

`make_encoder("molecule:fingerprints")` gives an encoder, `encoder.fit(training_items)` one that knows its columns, and
`encoder.encode(items)` rows with everything that went wrong listed. Heavy libraries load with the encoder that needs
them, never with this folder. It is not about aligning the rows of two sides (`align`).
"""

from bridgehead.encode.base import Encoded, Encoder, EncodeReport, Failure, load_encoder, make_encoder
from bridgehead.encode.cache import RowCache

__all__ = ["EncodeReport", "Encoded", "Encoder", "Failure", "RowCache", "load_encoder", "make_encoder"]
