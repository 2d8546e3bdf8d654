"""The command `bridgehead`: arguments, progress and printing, over what the library does.

`main` is the entry point. Nothing here computes; every command is one call that Python code can make as well.
"""

from bridgehead.cli.commands import main

__all__ = ["main"]
