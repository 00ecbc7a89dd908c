"""What goes into containers and comes out of them: input, output, logs, commands, connections.

- ``descriptors``: pipes and terminals, read and written by tasks
- ``container_logs``: what a container writes, in files that are rotated
- ``consoles``: the standard streams of a container
- ``log_reading``: parts of logs, as they are asked for
- ``sessions``: commands in containers, and attachments to containers
- ``measuring``: what containers use of CPU and memory
- ``pods``: answers what the API server asks about Pods that run
"""
