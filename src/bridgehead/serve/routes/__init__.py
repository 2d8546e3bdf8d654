"""What can be asked over HTTP and what each answer holds: routes, their models, and what the service says of itself.

Not about how requests wait and are answered (`answers`).
"""
