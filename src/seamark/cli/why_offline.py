"""``seamark why -f``: the checks on manifests."""

from __future__ import annotations

import argparse

from seamark.cli.failure import Failure
from seamark.cli.why import style_of


def explain_files(options: argparse.Namespace, kind: str, name: str) -> int:
    """Report on the Services of manifests, or on one object of them."""
    from seamark.why import machine, render
    from seamark.why.explain import explain
    from seamark.why.explain_pod import explain_pod
    from seamark.why.offline import ManifestError, documents, world_of

    if kind == "dns" or options.watch or options.since:
        raise Failure("manifests have no DNS and no history: -f goes with svc/NAME, pod/NAME or nothing", 2)
    namespace = options.namespace or "default"
    try:
        world = world_of(documents(options.filename), namespace=namespace)
    except ManifestError as error:
        raise Failure(str(error), 2) from error
    if name:
        reports = [(explain_pod if kind == "pod" else explain)(world, (namespace, name))]
    else:
        chosen = [key for key in world.services if not options.namespace or key[0] == namespace]
        reports = [explain(world, key) for key in sorted(chosen)]
    code = 0 if all(each.healthy for each in reports) else 1
    if options.output == "json":
        print(machine.text({"reports": [machine.report(each) for each in reports]}))
    elif reports:
        style = style_of(options)
        wrong = [render.report(each, style) for each in render.worst_first(reports) if not each.healthy]
        fine = [render.report(each, style) for each in reports if each.healthy]
        print("\n\n".join([*wrong, *(["\n".join(fine)] if fine else [])]))
    else:
        print("no Services in these manifests")
    return code
