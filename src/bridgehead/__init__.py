"""bridgehead aligns two modalities in one space, proves that the alignment is real, and searches across it."""

__version__ = "0.1.0"
