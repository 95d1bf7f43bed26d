# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of models of transformers, without a GPU."""

from gdn.bench import transformers_tables

MODEL = {"model": "Qwen3.5-4B", "layers": 8}


def row(impl: str, step: str, how: str, tokens: int, ms: float | None, linear=None) -> dict:
    batch = tokens if step == "decode" else 2
    config = MODEL | {"step": step, "how": how, "N": batch, "T": tokens}
    made = {"suite": "transformers", "impl": impl, "config": config}
    if ms is None:
        return made | {"refused": "no memory"}
    made |= {"ms": ms, "tokens_per_s": tokens / ms * 1e3}
    return made | ({} if linear is None else {"linear_ms": linear})


def report(*rows: dict) -> dict:
    versions = {"torch": "2.11", "fla": None}
    return {"device": "a GPU", "date": "2026-11-27", "versions": versions, "rows": list(rows)}


def test_tokens_per_second_and_shares():
    text = transformers_tables.markdown(
        report(
            row("stock", "prefill", "eager", 4096, 40.0, 10.0),
            row("gdn layers", "prefill", "eager", 4096, 32.0, 3.2),
            row("stock", "decode", "graph", 16, 4.0, 2.0),
            row("gdn layers", "decode", "graph", 16, 3.2, 1.28),
            row("stock", "decode", "compiled", 1, 2.0),
            row("gdn layers", "decode", "compiled", 1, None),
            {"suite": "transformers", "impl": "stock", "config": MODEL, "error": 1.5e-2},
            {"suite": "transformers", "impl": "gdn layers", "config": MODEL, "error": 1.2e-2},
        )
    )
    assert text.startswith("a GPU, 2026-11-27; torch 2.11, fla not installed.\n")
    assert "Qwen3.5-4B, 8 layers with random weights, bf16" in text
    assert "| prompts | 2 x 2,048 | 102,400 | 25 % | 128,000 | 10 % | 1.25 |" in text
    assert "| tokens, in a graph | 16 | 4,000 | 50 % | 5,000 | 40 % | 1.25 |" in text
    assert "| tokens, torch.compile | 1 | 500 |  |  |  |  |" in text
    assert "Errors of logits against f32, 8 layers: stock 1.5e-02, gdn layers 1.2e-02." in text
    assert "Not measured: gdn layers, tokens, torch.compile: no memory." in text


def test_other_reports_have_none():
    assert transformers_tables.markdown(report({"suite": "decode"})) == ""
