"""Faults in handlers of informers, and how many were counted."""


def fail_once(owner, method):
    """Have a method raise the next time it is called, and work again after that."""
    working = getattr(owner, method)

    def failing(*args, **more):
        setattr(owner, method, working)
        raise ValueError("a bug")

    setattr(owner, method, failing)


def failures(metrics):
    """By name: how many changes a controller or a state that controllers share failed to take in."""
    found = {}
    for line in metrics.text().splitlines():
        if line.startswith("seamark_handler_failures_total{") and not line.endswith(" 0"):
            name, _, count = line.partition('name="')[2].partition('"} ')
            found[name] = int(count)
    return found


def state_of(manager, name):
    """The controller or shared state of this name."""
    [found] = [state for following in manager._followings for state in following._states if state.name == name]
    return found
