"""How every controller runs: informers report changes, a queue collects keys, workers handle them.

- ``controller``: the base class: what a controller watches, and how it handles one key
- ``queue``: the keys to be handled now, later, or again after a failure
- ``workers``: tasks that take keys from the queue and handle them
- ``following``: passes the changes that informers report on to controllers
- ``ledger``: remembers our own writes until the informer shows them, so that nothing is written twice
- ``manager``: starts the controllers of a process once their informers have listed everything, and stops them
- ``supervisor``: starts a part of the process again when it fails, and says which part failed and why
- ``turns``: work that comes from many clients, or has very many steps, and keeps no other client waiting
"""
