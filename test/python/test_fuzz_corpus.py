# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The corpus of the image fuzzer is of today's format: files of another one are refused at
their first field, and nothing behind it is fuzzed."""

from conftest import ROOT

from gdn import GdnError, Runtime

CORPUS = ROOT / "test/data/fuzz/gdnrt_fuzz_image"


def message_of(runtime: Runtime, data: bytes) -> str:
    try:
        runtime.image(data)
    except GdnError as error:
        return str(error)
    return ""


def test_images_of_the_corpus_have_the_format_of_today(build_dir):
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    messages = [message_of(runtime, file.read_bytes()) for file in sorted(CORPUS.iterdir())]
    # The seeds; for others the fuzzer mends the checksum.
    assert messages.count("") >= 5, set(messages)
