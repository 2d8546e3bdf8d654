"""Shortcuts: what length, shared words, names, columns or a planted tag find alone, and what is lost without them."""
