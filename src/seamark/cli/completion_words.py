"""What could stand where the cursor is: the words of a command line to what is wanted there.  Pure.

The shells know nothing of our commands: they hand over what has been typed and offer what they get back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from seamark.cli.completion_model import Option, Source, Value, Verb

Word = tuple[str, str]  # and what it is about

GLOBAL: tuple[Word, ...] = (("--help", "all commands"), ("--version", "which Seamark this is"))


class Wanted(msgspec.Struct, frozen=True):
    """What is to be offered: ``words``, or something to find out.

    ``lead`` is what stands before it in the same word (``--output=``, ``svc,``, ``svc/``); ``typed`` is its beginning.
    ``given`` are the options so far, which say whom to ask.
    """

    source: Source
    typed: str
    lead: str = ""
    words: tuple[Word, ...] = ()
    kind: str = ""
    given: Mapping[str, str] = {}


def wanted(typed: Sequence[str], verbs: Mapping[str, str], load: Callable[[str], Verb]) -> Wanted:
    """What can stand in the place of the last of these words; ``verbs`` are all verbs, of which one is loaded."""
    *before, last = typed
    if not before or before[0] == "help":
        if len(before) > 1:
            return Wanted("", last)
        named = tuple(verbs.items())
        return Wanted("words", last, words=named if before else (*named, ("help", "about a command"), *GLOBAL))
    if before[0] not in verbs:
        return Wanted("", last)
    verb = load(before[0])
    places, given, open_option = _read(verb, before[1:])
    if open_option is not None:
        assert open_option.value is not None
        return _of_value(open_option.value, last, given)
    flag, equals, value = last.partition("=")
    option = _option(verb, flag)
    if equals and option is not None and option.value is not None:
        return _of_value(option.value, value, given, lead=f"{flag}=")
    if last.startswith("-"):
        flags = tuple((flag, option.about) for option in verb.options for flag in option.flags)
        return Wanted("words", last, words=flags)
    return _of_place(verb, places, last, given)


def _read(verb: Verb, words: Sequence[str]) -> tuple[list[str], dict[str, str], Option | None]:
    """The words that are no options, the options with their values, and one that waits for its value."""
    places: list[str] = []
    given: dict[str, str] = {}
    waiting: Option | None = None
    for word in words:
        flag, equals, value = word.partition("=")
        option = _option(verb, flag)
        if waiting is not None:
            given[waiting.flags[-1]] = word
            waiting = None
        elif not word.startswith("-"):
            places.append(word)
        elif option is not None and option.value is not None and equals:
            given[option.flags[-1]] = value
        elif option is not None and option in verb.valued:
            waiting = option
        elif option is None and (short := _option(verb, word[:2])) is not None and short in verb.valued:
            given[short.flags[-1]] = word[2:]  # -nshop
    return places, given, waiting


def _option(verb: Verb, flag: str) -> Option | None:
    return next((option for option in verb.options if flag in option.flags), None)


def _of_value(value: Value, typed: str, given: Mapping[str, str], lead: str = "") -> Wanted:
    return Wanted(value.source, typed, lead, tuple((word, "") for word in value.words), given=given)


def _of_place(verb: Verb, places: Sequence[str], typed: str, given: Mapping[str, str]) -> Wanted:
    value = verb.place(len(places))
    if len(places) >= len(verb.places) and not verb.repeats:
        return Wanted("", typed)
    kind, slash, name = typed.partition("/")
    if slash and (verb.place(0).source == "kinds" or f"{kind}/" in verb.place(0).words):
        return Wanted("names", name, f"{kind}/", kind=kind, given=given)
    if value.source == "names" and "/" in places[0]:
        return Wanted("kinds", typed, given=given)  # svc/web deploy/…
    if value.source == "names":
        return Wanted("names", typed, kind=places[0], given=given)
    if value.source == "kinds":
        earlier, comma, last = typed.rpartition(",")
        return Wanted("kinds", last, f"{earlier}{comma}", given=given)
    return _of_value(value, typed, given)
