"""What Seamark asks of the Linux kernel itself, without other programs and, where the kernel allows it, without rights.

- ``netlink``: messages and attributes to bytes and back, and the socket they are sent over
- ``links``: network interfaces, their addresses, and routes
- ``cgroups``: control groups, which limit what processes use
- ``calls``: system calls that Python's standard library lacks: namespaces, mounts
"""
