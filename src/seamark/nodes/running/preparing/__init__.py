"""What a container is given before its process begins.

- ``images``: what an image name stands for on this machine
- ``unpacking``: unpacks images that are on disk as a layout or an archive
- ``environment``: the variables and the command line of a container (pure)
- ``security``: what a container may do, and what this machine cannot honour (pure)
- ``resources``: the limits of CPU, memory and processes of a container (pure)
- ``volumes``: the volumes of a Pod as directories
- ``file_systems``: the plan of a container's file system
- ``starting``: all of it put together: what the machine is asked to start
"""
