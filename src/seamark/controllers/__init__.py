"""Who reacts: one module (or family of modules) per controller, all run by ``loop``.

What Services are found by comes about like this:

- ``members``: which Pods each Service selects, kept current by label indexes
- :mod:`seamark.rules.membership`: whether and how each of them is an endpoint, and why
- ``endpoints`` (``endpoints_subsets``, ``endpoints_state``): what an Endpoints should be; pure, and incremental
- ``endpointslices`` (``slices_objects``, ``slices_packing``, ``slices_group``, ``slices_state``, ``hints``): what the
  slices should be; pure, and incremental
- ``mirroring``: slices for Endpoints written by hand; pure
- ``trigger_time``: when that happened which something is written for
- ``slices_store``, ``slices_writer``, ``confirmations``: what is there, what we wrote, and being sure of it
- ``slices_absent``: slices in other hands, which are waited for
- ``endpoints_controller``, ``endpointslices_controller``, ``mirroring_controller``: follow, plan, carry out
- ``discovery``: the three of them over shared informers

``views`` are the objects as the discovery controllers read and write them; ``settings`` those of all controllers.
"""
