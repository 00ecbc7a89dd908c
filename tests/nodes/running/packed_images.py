"""Images on disk, made by tests: layers, OCI layouts and archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile

CONFIG = {"config": {"Entrypoint": ["/app"], "Env": ["A=1"], "WorkingDir": "/srv", "User": "1000"}}


def layer(*entries, mode=0o644):
    """A tar file of (name, content) and of entries that are given whole."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as file:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                file.addfile(entry)
                continue
            name, content = entry
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            file.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def entry(name, kind, link="", mode=0o755):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def folder(name, mode=0o755):
    return entry(name, tarfile.DIRTYPE, mode=mode)


def layout(path, *layers, pack=gzip.compress):
    blobs = path / "blobs/sha256"
    blobs.mkdir(parents=True)

    def put(content):
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    manifest = {"config": put(json.dumps(CONFIG).encode()), "layers": [put(pack(each)) for each in layers]}
    inner = {"manifests": [put(json.dumps(manifest).encode())]}
    (path / "index.json").write_text(json.dumps({"manifests": [put(json.dumps(inner).encode())]}))
    (path / "oci-layout").write_text("{}")
    return str(path)


def docker_archive(path, *layers):
    with tarfile.open(path, "w") as file:
        parts = {"config.json": json.dumps(CONFIG).encode()}
        parts |= {f"{number}/layer.tar": each for number, each in enumerate(layers)}
        parts["manifest.json"] = json.dumps(
            [{"Config": "config.json", "Layers": [f"{number}/layer.tar" for number in range(len(layers))]}]
        ).encode()
        for name, content in parts.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return str(path)
