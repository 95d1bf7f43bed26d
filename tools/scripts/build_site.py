# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the documentation as a site in build/site, README.md first, and fails on a broken link.

The builder is ProperDocs, the maintained continuation of MkDocs 1, which has had no release
since 2024. It takes seconds, needs a dozen small packages, and its strict mode checks links to
pages, headings and pictures. Sphinx with MyST checks the same, in seven times as long and with
twice as many packages. site_pages.py adds links to source files and folders.

Pages of passes are on the site alone; what docs/generated has is taken as it is.
"""

from __future__ import annotations

import io
import logging
import shutil
import subprocess
import sys
from pathlib import Path

from properdocs.commands.build import build
from properdocs.config import load_config

import docs
import site_pages
from site_markdown import slug

ROOT = Path(__file__).resolve().parents[2]
STAGE, SITE = ROOT / "build/site-pages", ROOT / "build/site"
LINKS = ("not_found", "anchors", "absolute_links", "unrecognized_links")


def tracked() -> set[str]:
    """Files of the repository, with new ones that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    return {name for name in names.splitlines() if (ROOT / name).is_file()}


def made() -> dict[str, str]:
    """Pages that the repository does not keep."""
    found = {f"docs/generated/{name}.md": text for name, text in docs.of_passes().items()}
    return found | {"docs/generated/README.md": docs.index(has_passes=True)}


def build_site(pages: dict[str, str], assets: dict[str, Path], stage: Path, site: Path) -> None:
    """Raises properdocs.exceptions.Abort, which ends the program, if a link is broken."""
    shutil.rmtree(stage, ignore_errors=True)
    for name, text in pages.items():
        path = stage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, source in assets.items():
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, stage / name)
    config = load_config(
        io.BytesIO(b""),
        config_file_path=str(stage.parent / "properdocs.yml"),
        site_name="gdn",
        docs_dir=str(stage),
        site_dir=str(site),
        nav=site_pages.navigation(pages),
        strict=True,
        # Pages are read from files as well as from a server, and nothing from elsewhere.
        use_directory_urls=False,
        theme={"name": "readthedocs", "highlightjs": False, "navigation_depth": 2},
        markdown_extensions=["site_markdown", {"toc": {"slugify": slug, "permalink": "#"}}],
        validation={"links": dict.fromkeys(LINKS, "warn"), "nav": {"omitted_files": "ignore"}},
    )
    build(config)


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="site: %(message)s", stream=sys.stdout)
    names = tracked()
    pages = site_pages.collect(names, lambda name: (ROOT / name).read_text(), made())
    assets = {name: ROOT / name for name in names if site_pages.is_asset(name)}
    build_site(pages, assets, STAGE, SITE)
    print(f"site: {len(pages)} pages in {SITE.relative_to(ROOT)}, first index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
