"""Which objects a read or a watch is about: namespace, name, label and field selectors, as one frozen value."""

from __future__ import annotations

import msgspec

from seamark import errors
from seamark.api.call import ListOptions
from seamark.api.state.entries import Entry
from seamark.kinds.kind import Kind
from seamark.kinds.values.selectors import FieldSelector, LabelSelector, parse_fields, parse_labels


class Selection(msgspec.Struct, frozen=True):
    """``name`` is set when only one name can match: then nothing has to be searched."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    labels: LabelSelector | None = None
    fields: FieldSelector | None = None

    @property
    def everything(self) -> bool:
        """No selector beyond namespace and name."""
        return self.labels is None and self.fields is None

    def matches(self, entry: Entry) -> bool:
        """Namespace and name apart, which the caller has already used to find the entry."""
        if self.labels is not None and not self.labels.matches(entry.labels):
            return False
        return self.fields is None or self.fields.matches(self.fields_of(entry))

    def fields_of(self, entry: Entry) -> dict[str, str]:
        """An entry's values for field selectors; found once, then kept with it."""
        if self.kind.built_in or self.kind.shows_as_stored:
            if entry.fields is None:
                entry.fields = self._fields(entry, b"{" + entry.tail)
            return entry.fields
        form = entry.form(self.kind)
        assert form is not None, "it is converted before it is selected by fields: state.forms"
        if form.fields is None:
            form.fields = self._fields(entry, b"{" + form.tail)
        return form.fields

    def _fields(self, entry: Entry, text: bytes) -> dict[str, str]:
        found = dict(self.kind.fields_in(text))
        found["metadata.name"] = entry.name
        if self.kind.resource.namespaced:
            found["metadata.namespace"] = entry.namespace
        return found


def select(kind: Kind, namespace: str, name: str, options: ListOptions) -> Selection:
    """Parse the selectors of a request; a field this kind cannot be selected by is refused."""
    labels = parse_labels(options.labels) if options.labels else None
    fields = parse_fields(options.fields) if options.fields else None
    if fields is not None:
        known = {"metadata.name", *kind.field_names}
        if kind.resource.namespaced:
            known.add("metadata.namespace")
        for term in fields.terms:
            if term.path not in known:
                raise _unknown(kind, term.path)
        if name and not any(
            (term.path, term.operator, term.value) == ("metadata.name", "=", name) for term in fields.terms
        ):
            raise errors.BadRequest("fieldSelector metadata.name doesn't match requested name")
        namespace, name, fields = _narrowed(namespace, name, fields)
    return Selection(kind, namespace, name, labels, fields)


def _unknown(kind: Kind, path: str) -> errors.BadRequest:
    if kind.built_in and not kind.field_names:
        return errors.BadRequest(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    return errors.BadRequest(f"field label not supported: {path}")


def _narrowed(namespace: str, name: str, fields: FieldSelector) -> tuple[str, str, FieldSelector | None]:
    """Let ``metadata.name=x`` and ``metadata.namespace=y`` limit the search itself."""
    rest = []
    for term in fields.terms:
        equal = term.operator == "=" and term.value
        if equal and term.path == "metadata.name" and name in ("", term.value):
            name = term.value
        elif equal and term.path == "metadata.namespace" and namespace in ("", term.value):
            namespace = term.value
        else:
            rest.append(term)
    return namespace, name, FieldSelector(tuple(rest)) if rest else None
