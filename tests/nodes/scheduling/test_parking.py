"""Which Pods that fit nowhere are tried again, and in which order."""

from __future__ import annotations

from pictures import pod

from seamark.nodes.scheduling.parking import Parked


def parked(*pods, hopes=True):
    made = Parked()
    for each in pods:
        made.put(each, hopes=hopes)
    return made


def test_one_pod_of_each_group_is_due_once_for_an_event_the_most_important_first():
    groups = parked(pod("a"), pod("b"), pod("c", cpu="1"), pod("d", priority=7))
    assert list(groups.due()) == [], "nothing has happened since they came"
    groups.note(all_groups=False)
    assert list(groups.due()) == ["default/d", "default/a", "default/c"]
    assert list(groups.due()) == []


def test_those_that_were_left_over_come_first_at_the_next_event():
    groups = parked(pod("a"), pod("b", cpu="1"))
    groups.note(all_groups=False)
    assert next(groups.due()) == "default/a"
    groups.note(all_groups=False)
    assert list(groups.due()) == ["default/b", "default/a"]


def test_what_no_other_pod_keeps_out_waits_for_an_event_that_helps_all():
    groups = parked(pod("a"), hopes=False)
    groups.note(all_groups=False)
    assert list(groups.due()) == [None]
    groups.note(all_groups=True)
    assert list(groups.due()) == ["default/a"]


def test_the_group_of_a_pod_that_is_placed_names_the_next():
    groups = parked(pod("a"), pod("b"))
    group = groups.remove("default/a")
    assert group is not None
    assert groups.first(group) == "default/b"
    assert groups.remove("default/b") == group
    assert groups.first(group) is None
    assert not groups
    assert groups.remove("default/b") is None


def test_a_pod_whose_requirements_change_changes_its_group():
    groups = parked(pod("a"), pod("a", cpu="1"))
    groups.note(all_groups=False)
    assert list(groups.due()) == ["default/a"]
