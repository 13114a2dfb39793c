#!/usr/bin/env python3
"""usage: bundle.py ROOT ENGINE.js OUT.html

Writes the page without a server: one file with the compiled program (ENGINE.js and, beside it, ENGINE.wasm), the script
of its workers, and the list of the studies in ROOT/configs/studies.
"""
import base64
import gzip
import html
import pathlib
import re
import sys


def packed(data):
    return base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii")


def about(study):
    """The first sentence of the first comment of a study."""
    lines = []
    for line in study.read_text(encoding="utf-8").splitlines():
        if line.startswith("# yaml-language-server"):
            continue
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return re.split(r"(?<=[.?:]) ", " ".join(lines))[0].rstrip(":.")


def study_list(folder):
    items = [f'<li><a href="?study={study.stem}">{study.stem}</a>: {html.escape(about(study))}</li>'
             for study in sorted(folder.glob("*.yaml"), key=lambda path: path.stem)]
    return "\n".join(items)


def main(root, engine, out):
    browser = root / "sim/explore/browser"
    styles = [root / "sim/page/page.css", root / "sim/explore/page/explore.css"]
    parts = {
        "style": "\n".join(style.read_text(encoding="utf-8") for style in styles),
        "studies": study_list(root / "configs/studies"),
        "worker": packed(engine.read_bytes() + b"\n" + (browser / "worker.js").read_bytes()),
        "module": packed(engine.with_suffix(".wasm").read_bytes()),
        "loader": (browser / "loader.js").read_text(encoding="utf-8"),
    }
    page = re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], (browser / "page.html").read_text(encoding="utf-8"))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))
