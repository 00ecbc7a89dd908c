"""The sockets that queries arrive at.

- ``addresses``: finds the server's own addresses
- ``udp``: reads and answers datagrams
- ``mmsg``: Linux's system calls for many datagrams at once
- ``tcp``: reads and answers connections
"""
