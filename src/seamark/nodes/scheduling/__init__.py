"""The scheduler: chooses a node for each Pod.

- ``requests``: what a Pod needs of a node, and what a node has (pure)
- ``occupancy``: which Pods are on which node, and how much room is left
- ``volumes``: on which nodes its volumes can be used, and which ones its claims take there (pure)
- ``schedule``: the decision: which node, or why none (pure)
- ``preemption``: which Pods have to go so that a more important one fits (pure)
- ``parking``: Pods that fit nowhere, and which of them to try again (pure)
- ``scheduler``: follows Pods and Nodes, and writes the decisions
"""
