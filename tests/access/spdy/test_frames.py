"""SPDY's frames: bytes as the specification and Kubernetes' own implementation have them, there and back."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.access.spdy import frames as spdy
from seamark.access.spdy.dictionary import DICTIONARY
from seamark.access.spdy.frames import Data, GoAway, Ping, Reset, Session, SpdyError, SynReply, SynStream


def test_the_dictionary_is_the_one_of_the_specification() -> None:
    # Every SPDY/3 session starts with these four bytes as the identity of its dictionary.
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [
        (spdy.data(3, b"hello"), "00000003 00000005 68656c6c6f"),
        (spdy.data(3, fin=True), "00000003 01000000"),
        (spdy.reset(5), "80030003 00000008 00000005 00000005"),
        (spdy.ping(2), "80030006 00000004 00000002"),
        (spdy.go_away(7), "80030007 00000008 00000007 00000000"),
    ],
)
def test_frames_without_headers_have_these_bytes(written: bytes, bytes_: str) -> None:
    assert written == bytes.fromhex(bytes_)


def test_the_headers_of_a_session_are_compressed_with_the_dictionary_as_one_stream() -> None:
    client, inflate = Session(), zlib.decompressobj(zdict=DICTIONARY)
    for stream in (1, 3):
        frame = client.open(stream, {"streamtype": "data"}, fin=True)
        assert frame[:4].hex() == "80030001"
        assert frame[4] == 1, "the flag for the last frame of this side"
        assert frame[8:18] == stream.to_bytes(4, "big") + bytes(6)
        assert inflate.decompress(frame[18:]) == b"\0\0\0\1\0\0\0\x0astreamtype\0\0\0\4data"


texts = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=40)


@given(
    st.lists(st.dictionaries(texts, texts, max_size=5), min_size=1, max_size=5),
    st.binary(max_size=100),
    st.integers(1, 50),
)
def test_what_one_side_writes_the_other_reads_however_it_is_cut(
    headers: list[dict[str, str]], payload: bytes, size: int
) -> None:
    client, server = Session(), Session()
    written, wanted = b"", []
    for number, each in enumerate(headers):
        written += client.open(2 * number + 1, each, fin=bool(number % 2)) + client.accept(2 * number + 2, each)
        wanted += [SynStream(2 * number + 1, each, bool(number % 2)), SynReply(2 * number + 2, each)]
    written += spdy.data(1, payload, fin=True) + spdy.reset(3, 1) + spdy.ping(9) + spdy.go_away(1)
    wanted += [Data(1, payload, True), Reset(3, 1), Ping(9), GoAway(1)]
    read = [frame for at in range(0, len(written), size) for frame in server.frames(written[at : at + size])]
    assert read == wanted


def test_frames_that_are_not_needed_are_passed_over() -> None:
    settings = bytes.fromhex("80030004 0000000c 00000001 00000004 00000064")
    window = bytes.fromhex("80030009 00000008 00000001 00010000")
    assert list(Session().frames(settings + window + spdy.ping(2))) == [Ping(2)]


def test_headers_of_an_open_stream_are_decompressed_so_that_the_next_ones_can_be_read() -> None:
    client, server = Session(), Session()
    later = bytearray(client.accept(1, {"a": "b"}))
    later[3] = 8  # a HEADERS frame has the same payload
    assert list(server.frames(bytes(later) + client.open(3, {"c": "d"}))) == [SynStream(3, {"c": "d"})]


@pytest.mark.parametrize(
    ("received", "sentence"),
    [
        ("80020001 00000000", "version 2, not 3"),
        ("80030001 0000000c 00000001 00000000 0000ffff", "type 1 cannot be read"),
        ("80030003 00000004 00000001", "type 3 cannot be read"),
    ],
)
def test_what_is_not_spdy_is_an_error(received: str, sentence: str) -> None:
    with pytest.raises(SpdyError, match=sentence):
        list(Session().frames(bytes.fromhex(received)))


def test_headers_that_inflate_without_end_are_an_error() -> None:
    sender = Session()
    with pytest.raises(SpdyError, match="more than 65536 bytes"):
        list(Session().frames(sender.open(1, {"x": "y" * 100_000})))
