"""SPDY's frames: bytes as the specification and Kubernetes' own implementation have them, there and back."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.access.spdy import frames as spdy
from seamark.access.spdy.dictionary import DICTIONARY
from seamark.access.spdy.frames import Data, Frame, GoAway, Ping, Reset, Session, SpdyError, SynReply, SynStream


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
    assert joined(read) == wanted


def joined(frames: list[Frame]) -> list[Frame]:
    """The same frames, the pieces of data made one."""
    made: list[Frame] = []
    for frame in frames:
        if made and isinstance(frame, Data) and isinstance(made[-1], Data):
            before = made.pop()
            assert isinstance(before, Data)
            assert (before.stream, before.fin) == (frame.stream, False)
            frame = Data(frame.stream, before.payload + frame.payload, frame.fin)
        made.append(frame)
    return made


def test_data_are_read_as_they_come() -> None:
    """A frame may have 16 MiB: who waited for its end would have to keep them."""
    reader = Session()
    assert list(reader.frames(bytes.fromhex("00000003 01ffffff"))) == []
    assert list(reader.frames(b"some")) == [Data(3, b"some")]
    assert list(reader.frames(b"")) == []
    assert list(reader.frames(bytes(0xFFFFFF - 5))) == [Data(3, bytes(0xFFFFFF - 5))]
    assert list(reader.frames(b"!" + spdy.ping(1))) == [Data(3, b"!", fin=True), Ping(1)]


def test_lengths_are_those_of_bytes() -> None:
    assert list(Session().frames(Session().open(1, {"ä": "€"}))) == [SynStream(1, {"ä": "€"})]


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
        ("80030001 00ffffff", "a frame of type 1 has 16777215 bytes"),
        ("80030004 00010000", "a frame of type 4 has 65536 bytes"),
    ],
)
def test_what_is_not_spdy_is_an_error(received: str, sentence: str) -> None:
    with pytest.raises(SpdyError, match=sentence):
        list(Session().frames(bytes.fromhex(received)))


def opened(block: bytes, *, more: int = zlib.Z_SYNC_FLUSH) -> bytes:
    """A frame that opens a stream with this block of headers."""
    packer = zlib.compressobj(zdict=DICTIONARY)
    payload = bytes(10) + packer.compress(block) + packer.flush(more)
    return bytes.fromhex("80030001") + len(payload).to_bytes(4, "big") + payload


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (Session().open(1, {"x": "y" * 100_000}), "more than 16384 bytes"),
        (opened(b"\x7f\xff\xff\xff"), "2147483647 headers"),
        (opened(bytes(3) + b"\x65" + bytes(8 * 0x65)), "101 headers"),
        (opened(bytes(3) + b"\1" + b"\xff" * 8), "type 1 cannot be read"),
        (opened(bytes(3) + b"\1\x7f\xff\xff\xff" + bytes(8)), "type 1 cannot be read"),
    ],
)
def test_headers_that_ask_for_much_work_are_an_error(frame: bytes, sentence: str) -> None:
    with pytest.raises(SpdyError, match=sentence):
        list(Session().frames(frame))


def test_headers_behind_the_end_of_the_compressed_stream_are_an_error() -> None:
    """The decompressor would keep them."""
    ended = bytearray(opened(bytes(4), more=zlib.Z_FINISH))
    reader = Session()
    assert list(reader.frames(bytes(ended))) == [SynStream(0, {})]
    ended[3] = 8  # a HEADERS frame, whose contents are not needed
    with pytest.raises(SpdyError, match="compressed stream has ended"):
        list(reader.frames(bytes(ended)))


@given(st.binary(max_size=400), st.integers(1, 9))
def test_whatever_comes_is_frames_or_an_error(noise: bytes, kind: int) -> None:
    reader = Session()
    framed = bytes((0x80, 3, 0, kind)) + len(noise).to_bytes(4, "big") + noise
    for received in (framed, noise):
        try:
            list(reader.frames(received))
        except SpdyError:
            return
