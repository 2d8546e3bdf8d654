"""How requests are answered: they wait in lanes, are vetted, and are asked of the space that is held open, together.

Not about HTTP (`routes`, `wire`).
"""
