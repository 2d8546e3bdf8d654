"""How a request comes in and an answer goes out, whatever it asks: connections, bodies, who may ask, errors, headers.

Not about what is asked (`routes`) or who answers (`answers`).
"""
