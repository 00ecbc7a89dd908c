"""Images on disk: layouts and archives, unpacked as container runtimes do, and never outside of their directory."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from packed_images import CONFIG, docker_archive, entry, folder, layer, layout

from seamark.nodes.running.preparing.images import NoImage
from seamark.nodes.running.preparing.unpacking import unpack


def files(root):
    return {str(each.relative_to(root)) for each in Path(root).rglob("*") if not each.is_dir() or each.is_symlink()}


BASE = layer(folder("etc", 0o555), ("etc/name", b"base"), ("old/a", b""), ("old/b", b""), ("gone", b""))
OVER = layer(("etc/name", b"over"), ("old/.wh..wh..opq", b""), ("old/c", b""), (".wh.gone", b""))


@pytest.mark.parametrize("make", ["layout", "oci-archive", "archive-of-dot", "docker-archive"])
def test_layers_lie_over_each_other(tmp_path, make):
    if make == "docker-archive":
        place = docker_archive(tmp_path / "image.tar", BASE, OVER)
    else:
        place = layout(tmp_path / "layout", BASE, OVER)
    if make in ("oci-archive", "archive-of-dot"):
        with tarfile.open(tmp_path / "image.tar.gz", "w:gz") as file:
            if make == "archive-of-dot":
                file.add(place, ".")
            else:
                for name in ("index.json", "blobs"):
                    file.add(f"{place}/{name}", name)
        place = str(tmp_path / "image.tar.gz")
    found = unpack(place, tmp_path / "images")
    assert files(found.root) == {"etc/name", "old/c"}
    assert Path(found.root, "etc/name").read_text() == "over"
    assert (found.config.entrypoint, found.config.env, found.config.user) == (("/app",), ("A=1",), "1000")
    assert found.digest == f"sha256:{hashlib.sha256(json.dumps(CONFIG).encode()).hexdigest()}"


def test_an_image_is_unpacked_once(tmp_path):
    place = layout(tmp_path / "layout", BASE)
    root = unpack(place, tmp_path / "images").root
    Path(root, "mark").touch()
    assert "mark" in files(unpack(place, tmp_path / "images").root)


def test_links(tmp_path):
    place = layout(
        tmp_path / "layout",
        layer(
            ("real/file", b"1"), entry("hard", tarfile.LNKTYPE, "real/file"), entry("soft", tarfile.SYMTYPE, "/real")
        ),
        layer(("soft/more", b"2"), entry("pipe", tarfile.FIFOTYPE), entry("dev", tarfile.CHRTYPE)),
    )
    root = unpack(place, tmp_path / "images").root
    assert files(root) == {"real/file", "real/more", "hard", "soft", "pipe"}
    assert Path(root, "hard").read_text() == "1"


@pytest.mark.parametrize(
    "evil",
    [
        layer(("../../escaped", b"x")),
        layer(entry("up", tarfile.SYMTYPE, "../.."), ("up/../../escaped", b"x")),
        layer(entry("hard", tarfile.LNKTYPE, "../../outside")),
    ],
)
def test_nothing_leads_out_of_the_image(tmp_path, evil):
    (tmp_path / "outside").write_text("mine")
    with pytest.raises(NoImage, match="leads out of the image"):
        unpack(layout(tmp_path / "layout", evil), tmp_path / "images")
    assert not list(tmp_path.rglob("escaped"))
    assert not list((tmp_path / "images").iterdir())


def test_a_link_that_climbs_ends_at_the_root(tmp_path):
    made = layer(entry("up", tarfile.SYMTYPE, "../../.."), ("up/file", b"x"))
    root = unpack(layout(tmp_path / "layout", made), tmp_path / "images").root
    assert files(root) == {"up", "file"}


@pytest.mark.parametrize(
    ("what", "words"),
    [(b"no tar", "cannot be unpacked"), (b"", "cannot be unpacked")],
)
def test_what_is_no_image(tmp_path, what, words):
    (tmp_path / "file").write_bytes(what)
    with pytest.raises(NoImage, match=words):
        unpack(str(tmp_path / "file"), tmp_path / "images")


def test_an_image_may_not_be_too_large(tmp_path):
    with pytest.raises(NoImage, match="larger than images may be"):
        unpack(layout(tmp_path / "layout", BASE, OVER), tmp_path / "images", largest=6)


def test_layers_of_zstd(tmp_path):
    place = layout(tmp_path / "layout", BASE, pack=lambda content: b"\x28\xb5\x2f\xfd" + content)
    with pytest.raises(NoImage):
        unpack(place, tmp_path / "images")
