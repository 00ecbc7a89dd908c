"""The machine that Pods run on: one helper process in namespaces of its own, which any user may create.

Inside its user namespace the helper is root: it may create network namespaces, mount file systems and start processes
there.  It is kept small and decides nothing.  The daemon outside asks it for three things: a namespace, a socket that
was opened in a namespace, a process in a namespace.  A socket stays in the namespace it was opened in, also
when another process uses it: so the daemon itself configures interfaces, writes nftables, listens for DNS queries and
connects to Pods, over sockets that it was given.

The helper is process 1 of its PID namespace, so the kernel ends every process of every Pod when it ends; and it ends
when the daemon does, however that happens.

Reading order:

- ``messages``: what is asked and answered
- ``channel``: messages and open files over a Unix socket
- ``roots``: the steps that make a container's file system, as data
- ``birth``: what a new process does between its creation and its program
- ``helper``: the helper's loop; the module that is run as a program is how it enters its namespaces
- ``machine``: the daemon's side
"""
