"""Fetch a Go toolchain from the Go module proxy: `fetch_go.py go1.25.4 DIRECTORY`. $GOPROXY names the proxy."""

import io
import os
import platform
import sys
import urllib.request
import zipfile
from pathlib import Path

version, target = sys.argv[1], Path(sys.argv[2])
machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
proxy = os.environ.get("GOPROXY", "").split(",")[0].split("|")[0]
if proxy in ("", "direct", "off"):
    proxy = "https://proxy.golang.org"
name = f"v0.0.1-{version}.linux-{machine}"
with urllib.request.urlopen(f"{proxy}/golang.org/toolchain/@v/{name}.zip", timeout=300) as answer:
    content = answer.read()
prefix = f"golang.org/toolchain@{name}/"
with zipfile.ZipFile(io.BytesIO(content)) as archive:
    for item in archive.infolist():
        path = target / item.filename.removeprefix(prefix)
        if item.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive.read(item))
        # A module's archive keeps no modes: programs are told by their place.
        path.chmod(0o755 if path.parent.name in ("bin", "linux_amd64", "linux_arm64") else 0o644)
