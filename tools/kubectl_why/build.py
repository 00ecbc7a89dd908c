"""Build ``dist/kubectl-why``, one file for this Python and platform, and the manifest with which krew installs it.

``python tools/kubectl_why/build.py [URI]``; URI is where the archive will be downloaded from.
"""

from __future__ import annotations

import compileall
import hashlib
import platform
import py_compile
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipapp
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENT = ("msgspec", "aiohttp", "pyyaml", "dnspython", "sortedcontainers")  # what `why` imports of our dependencies
MANIFEST = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: why
spec:
  version: v{version}
  homepage: {homepage}
  shortDescription: Why a Service has no endpoints, and what to do
  description: |
    Says why a Service has no endpoints, or not those it should have: the cause and the fix first, then one verdict for
    each candidate Pod.  It reads only.  It needs Python {python} on this machine.
  platforms:
  - selector:
      matchLabels: {{os: {os}, arch: {arch}}}
    uri: {uri}
    sha256: {sha256}
    bin: kubectl-why
    files:
    - {{from: kubectl-why, to: .}}
    - {{from: LICENSE, to: .}}
"""


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        content, program = Path(folder, "content"), Path(folder, "program")
        wanted = [each for each in project["dependencies"] if each.startswith(CLIENT)]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--target",
            str(content),
        ]
        subprocess.run([*pip, *wanted], check=True)
        subprocess.run([*pip, "--no-deps", str(ROOT)], check=True)
        shutil.rmtree(content / "bin", ignore_errors=True)
        # Compiled here, so that no start has to, also where Python may not write what it compiles.
        compileall.compile_dir(content, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        shutil.make_archive(str(program / "content"), "zip", content)
        shutil.copy(ROOT / "tools" / "kubectl_why" / "__main__.py", program)
        # Neither the environment nor site-packages of that Python have a say (-I, -S): it starts faster without them.
        zipapp.create_archive(program, dist / "kubectl-why", interpreter="/usr/bin/env -S python3 -IS")
    os, arch = platform.system().lower(), {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "arm64")
    archive = dist / f"kubectl-why-{os}-{arch}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(dist / "kubectl-why", "kubectl-why")
        packed.add(ROOT / "LICENSE", "LICENSE")
    version, homepage = project["version"], project["urls"]["Homepage"]
    uri = sys.argv[1] if len(sys.argv) > 1 else f"{homepage}/releases/download/v{version}/{archive.name}"
    text = MANIFEST.format(
        version=version,
        homepage=homepage,
        python=".".join(platform.python_version_tuple()[:2]),
        os=os,
        arch=arch,
        uri=uri,
        sha256=hashlib.sha256(archive.read_bytes()).hexdigest(),
    )
    (dist / "why.yaml").write_text(text)
    print(f"dist/kubectl-why, dist/{archive.name} and dist/why.yaml (kubectl krew install --manifest=dist/why.yaml)")


if __name__ == "__main__":
    main()
