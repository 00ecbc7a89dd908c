"""Fixed names from the configuration, in the format of a hosts file: ``ADDRESS NAME [NAME …]``.

They are looked up first and win over the cluster's own names.  A listed name has only address records; the PTR record
of an address points to the first name in its line.  ``put`` changes a name later, for an owner that follows a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable

from seamark.dns.zone.answers import ADDRESS_LENGTHS, Answer
from seamark.dns.zone.names import Labels, labels_of, parse_address, reverse_labels
from seamark.dns.zone.records import Question, Rcode, Record, Spelled, Type, lowered, spell, spellable

HOSTS_TTL = 3600


class StaticRecords:
    def __init__(self, lines: Iterable[str] = (), *, ttl: int = HOSTS_TTL) -> None:
        self._ttl = ttl
        self._addresses: dict[Labels, list[bytes]] = {}
        self._names: dict[Labels, list[Spelled]] = {}
        for line in lines:
            self._add(line)

    def _add(self, line: str) -> None:
        address, *names = line.partition("#")[0].split() or [""]
        if not address:
            return
        packed = parse_address(address)
        if packed is None or not names:
            raise ValueError(f"not a static record: {line.strip()!r}; write an address and one or more names")
        for name in names:
            spelled = spell(name)
            if not spelled or not spellable(spelled):
                raise ValueError(f"not a name: {name!r} in the static record {line.strip()!r}")
            of_name = self._addresses.setdefault(lowered(spelled), [])
            if packed not in of_name:
                of_name.append(packed)
        self._names.setdefault(reverse_labels(packed), []).append(spell(names[0]))

    def put(self, name: str, addresses: Iterable[str]) -> None:
        """Give a name these addresses; without any, remove it."""
        packed = [each for each in map(parse_address, addresses) if each is not None]
        self._addresses.pop(labels_of(name), None)
        if packed:
            self._addresses[labels_of(name)] = packed

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def answer(self, question: Question) -> Answer | None:
        """The answer for a listed name or address; None for any other."""
        name = question.name
        if name in self._addresses:
            length = ADDRESS_LENGTHS.get(question.type)
            records = [
                Record(question.spelled, question.type, self._ttl, (packed,))
                for packed in self._addresses[name]
                if len(packed) == length
            ]
            return _answer(records, "a static record")
        if name in self._names:
            targets = self._names[name] if question.type == Type.PTR else []
            return _answer(
                [Record(question.spelled, Type.PTR, self._ttl, (target,)) for target in targets], "a static record"
            )
        return None


def _answer(records: list[Record], why: str) -> Answer:
    return Answer(Rcode.NOERROR, why, (), set(), records, [], [], [])
