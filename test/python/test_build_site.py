# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation site: where links lead, what it is built of, and that a broken link fails."""

import markdown
import pytest
from properdocs.exceptions import Abort

import build_site
import site_markdown
import site_pages

NAMES = {
    "README.md",
    "lib/Visit.cpp",
    "docs/spec/README.md",
    "docs/spec/gates.md",
    "docs/design/one.md",
    "docs/design/one.svg",
    "tools/new.md",
}
TEXTS = {name: f"# Title of {name}\n" for name in NAMES}
PAGES = {name: TEXTS[name] for name in NAMES if site_pages.is_page(name)}


def linked(page: str, text: str) -> tuple[str, set[str]]:
    return site_pages.linked(page, text, NAMES, PAGES)


def test_pages_and_pictures_are_those_of_docs():
    assert set(PAGES) == NAMES - {"lib/Visit.cpp", "docs/design/one.svg", "tools/new.md"}
    assert [name for name in NAMES if site_pages.is_asset(name)] == ["docs/design/one.svg"]


def test_links_between_pages_stay():
    text = (
        "[a](../spec/gates.md#gates), ![b](one.svg), [c](#here), [d](https://e.org/lib/Visit.cpp)"
    )
    assert linked("docs/design/one.md", text) == (text, set())


def test_a_source_has_a_page_and_a_folder_has_a_list():
    text, wanted = linked(
        "docs/design/one.md", "[`visit`](../../lib/Visit.cpp#L3) [all](../design/)"
    )
    assert text == "[`visit`](../../lib/Visit.cpp.md) [all](../design/README.md)"
    assert wanted == {"lib/Visit.cpp", "docs/design"}
    # One that has a page of its own needs no list.
    assert linked("README.md", "[spec](docs/spec)") == ("[spec](docs/spec/README.md)", set())


def test_code_has_no_links():
    text = "`[a](lib/Visit.cpp)`\n\n```c\nx[a](lib/Visit.cpp)\n```\n"
    assert linked("README.md", text) == (text, set())


def test_what_is_not_in_the_repository_stays_as_it_is():
    assert linked("README.md", "[a](lib/Gone.cpp) [b](build)") == (
        "[a](lib/Gone.cpp) [b](build)",
        set(),
    )


def test_the_site_is_what_is_there_made_or_linked():
    texts = TEXTS | {
        "README.md": "# gdn\n\n[a](lib/Visit.cpp) [b](docs/design) [c](tools/new.md)\n"
    }
    made = {"docs/spec/made.md": "# Made\n"}
    site = site_pages.collect(NAMES, texts.__getitem__, made)
    new = {"lib/Visit.cpp.md", "docs/design/README.md", "tools/new.md.md"}
    assert set(site) == set(PAGES) | set(made) | new
    assert "~~~\n# Title of lib/Visit.cpp\n~~~" in site["lib/Visit.cpp.md"]
    assert "- [Title of docs/design/one.md](one.md)\n- one.svg" in site["docs/design/README.md"]


def test_the_menu_has_pages_by_title_and_no_sources():
    names = ("README.md", "docs/spec/made.md", "docs/spec/README.md", "docs/glossary.md")
    site = dict.fromkeys(names, "# `Title` of it\n") | {"CHANGELOG.md": "# Changelog\n"}
    site |= {"docs/generated/gdn.md": "# A\n", "docs/generated/times.json.md": "# B\n"}
    title = "Title of it"
    assert site_pages.navigation(site) == [
        {title: "README.md"},
        {title: "docs/glossary.md"},
        {"Specification": [{title: "docs/spec/README.md"}, {title: "docs/spec/made.md"}]},
        {"Generated reference": [{"gdn": "docs/generated/gdn.md"}]},
        {"Changelog": "CHANGELOG.md"},
    ]


@pytest.mark.parametrize(
    "heading, anchor",
    [
        ("Rows in turns", "rows-in-turns"),
        ("What only --full runs", "what-only---full-runs"),
        ("Rounding: precision=f32, `mixed`", "rounding-precisionf32-mixed"),
        ("gdn_tile", "gdn_tile"),
    ],
)
def test_anchors_are_those_of_github(heading, anchor):
    assert site_markdown.slug(heading) == anchor


def test_items_of_lists_go_on_three_columns_to_the_right():
    text = "1. one\n\n       code\n\n   more\n\n2. two\n"
    html = markdown.markdown(text, extensions=["tables", "site_markdown"])
    assert html.count("<ol>") == 1 and html.count("<li>") == 2
    assert "code\n</code></pre>\n<p>more</p>" in html


@pytest.mark.parametrize(
    "link, says",
    [
        ("docs/two.md#heading", ""),
        ("docs/two.md#other", "does not contain an anchor '#other'"),
        ("docs/three.md", "is not found"),
        ("lib/Gone.cpp", "lib/Gone.cpp"),
    ],
)
def test_a_broken_link_fails(tmp_path, caplog, link, says):
    pages = {"README.md": f"# One\n\n[link]({link})\n", "docs/two.md": "# Two\n\n## Heading\n"}
    site = tmp_path / "site"
    if says:
        with pytest.raises(Abort):
            build_site.build_site(pages, {}, tmp_path / "stage", site)
        assert says in caplog.text
        return
    build_site.build_site(pages, {}, tmp_path / "stage", site)
    assert 'href="docs/two.html#heading"' in (site / "index.html").read_text()


def test_every_link_leads_to_a_file():
    """Of all pages, in each run; anchors are checked where the site is built."""
    names = build_site.tracked()
    site = site_pages.collect(names, lambda name: (build_site.ROOT / name).read_text(), {})
    known = names | set(site)
    wrong = [
        f"{page}: {target}"
        for page, text in site.items()
        if site_pages.is_page(page)
        for target in site_pages.targets(page, text)
        if target not in known
    ]
    assert wrong == []
