"""Does each task once when it is imported: the server of the processes imports it, and they come from it warm.

For nobody else: to import it elsewhere costs the loading of RDKit. What the tasks are is in `tasks`.
"""

from bridgehead.serve.sandbox.tasks import warm_up

warm_up()
