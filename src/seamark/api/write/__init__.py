"""The write path: how an object gets into the store.  ``create`` and ``change`` do these steps in order:

    create   default → track fields → mutate → stamp → prepare → allocate → validate → admit → commit
    change   read → make the new object → default → track → carry over → mutate → prepare → allocate → validate →
             admit → commit

Admission edits the object early (mutate) and judges it last (admit).  Fields are tracked before the server sets its
own, so that no field manager owns what is allocated or carried over.

From the read to the commit no step awaits, unless a step of admission does, so no other write of this process comes
between a check and the commit that relies on it; the commit's expectations guard against other servers, and against
what happened while a step waited.  What is allocated (addresses, node ports) is
committed in the object's own transaction, so nothing has to be undone when a write fails.

Large objects take long.  Their steps that look at nothing but the object (make, default, track, validate) are done in a
thread (:mod:`seamark.haste`), for which the write waits as it does for a step of admission.  Steps that look at the
state (admission, allocation, commit) never leave the event loop, and nothing is awaited between the last of them.

``path`` has what both use, ``values`` what a write makes; ``twins`` keeps what was worked out for one Pod for those
that differ only in their names, ``repeats`` what became of a status for those that differ only in addresses, both
in a bounded table (``recurring``).
"""
