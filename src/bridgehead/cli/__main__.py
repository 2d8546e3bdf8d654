"""`python -m bridgehead.cli` is the command `bridgehead`; the commands themselves are in `commands`."""

from bridgehead.cli import main

if __name__ == "__main__":
    main()
