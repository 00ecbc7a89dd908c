"""Sentences about labels, as Kubernetes 1.38 words them: it counts bytes there, and characters in names."""

from __future__ import annotations

import pytest

from seamark.kinds.values.metadata import dns_label, dns_subdomain, label_value, qualified_name

LONG = "a" * 64


@pytest.mark.parametrize(
    ("found", "beginning"),
    [
        (qualified_name(LONG), "name part must be no more than 63 bytes"),
        (qualified_name(f"{'a' * 254}/b"), "prefix part must be no more than 253 bytes"),
        (qualified_name("a/b/c"), "a valid label key must consist of alphanumeric characters"),
        (label_value(LONG), "must be no more than 63 bytes"),
        (dns_label(LONG), "must be no more than 63 characters"),
        (dns_subdomain("a" * 254), "must be no more than 253 characters"),
    ],
)
def test_sentences(found: list[str], beginning: str) -> None:
    assert len(found) == 1
    assert found[0].startswith(beginning)
