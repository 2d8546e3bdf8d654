"""RDKit on structures from outside, in processes with limits of time and memory: one that hangs costs its own call.

Tasks are named from a fixed table; plain data (JSON) goes in and comes out. Not about what is done with the results.
"""

from bridgehead.serve.sandbox.pool import Sandbox

__all__ = ["Sandbox"]
