# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generates with a model of transformers, first with its own functions, then with gdn's kernels.

    python python/examples/generate.py
    python python/examples/generate.py --model FOLDER --prompt "Once upon a time" --device cuda

Without --model the model is a small Qwen3.5 with random weights, and the prompt is random. Needs
PyTorch and transformers, and kernels: the package gdn-images, or gdn-compile.
"""

import argparse
import sys
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.qwen3_5 import Qwen3_5TextConfig

import gdn.integrations.transformers as integration

RANDOM = {
    "vocab_size": 1024,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "eos_token_id": None,
}


def load(folder: str | None, dtype: torch.dtype) -> torch.nn.Module:
    """The model of a folder, or one with random weights."""
    if folder:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(Qwen3_5TextConfig(**RANDOM), dtype=dtype)


def timed(model: torch.nn.Module, prompt: torch.Tensor, count: int) -> tuple[torch.Tensor, float]:
    """So many greedy tokens for each prompt, and the seconds that they took."""
    if prompt.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    options = {"min_new_tokens": count, "max_new_tokens": count, "do_sample": False}
    found = model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
    return found[:, prompt.shape[1] :].cpu(), time.perf_counter() - start


def measure(name: str, model: torch.nn.Module, prompt: torch.Tensor, count: int) -> torch.Tensor:
    """Prints a row of the table, and returns the tokens."""
    timed(model, prompt, 2)  # what is compiled or loaded at first use
    _, prefill = timed(model, prompt, 1)
    tokens, whole = timed(model, prompt, count)
    decode = prompt.shape[0] * (count - 1) / max(whole - prefill, 1e-9)
    print(f"{name:6}  {prompt.numel() / prefill:16.0f}  {decode:15.1f}", flush=True)
    return tokens


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", help="a folder with a model's configuration and weights")
    parser.add_argument("--prompt", help="a text; needs a model with a tokenizer")
    parser.add_argument("--prompt-tokens", type=int, default=256, help="of a random prompt")
    parser.add_argument("--batch", type=int, default=1, help="random prompts at once")
    parser.add_argument("--new-tokens", type=int, default=32)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=["cpu", "cuda"], default=default)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], help="bfloat16 on GPUs")
    options = parser.parse_args(arguments)
    if options.prompt and not options.model:
        parser.error("--prompt: expected --model with it")
    if options.new_tokens < 2:
        parser.error(f"--new-tokens: expected 2 or more, got {options.new_tokens}")
    dtype = options.dtype or ("bfloat16" if options.device == "cuda" else "float32")
    model = load(options.model, getattr(torch, dtype)).eval().to(options.device)
    if options.prompt:
        tokenizer = AutoTokenizer.from_pretrained(options.model)
        prompt = tokenizer(options.prompt, return_tensors="pt").input_ids
    else:
        vocabulary = model.get_input_embeddings().num_embeddings
        prompt = torch.randint(vocabulary, (options.batch, options.prompt_tokens))
    prompt = prompt.to(options.device)
    print("        prefill tokens/s  decode tokens/s")
    stock = measure("stock", model, prompt, options.new_tokens)
    layers = integration.patch(model)
    ours = measure("gdn", model, prompt, options.new_tokens)
    equal = int((stock == ours).long().cumprod(dim=1).sum())
    print(f"{layers} layers of linear attention")
    print(f"{equal} of {ours.numel()} tokens are equal, up to the first of a row that is not")
    if options.prompt:
        print(options.prompt + tokenizer.decode(ours[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
