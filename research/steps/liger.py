"""Steps of Hugging Face models on the GPU at hand, with Liger's kernels or without, one JSON object a line.

    python3 liger.py hugging-face >> steps.jsonl
    python3 liger.py liger >> steps.jsonl
    python3 liger.py "liger, eager loss" >> steps.jsonl

Liger replaces functions of the library, so each variant has a process of its own. Weights, gradients and moments in bfloat16, fused
AdamW.
"""
import gc
import json
import sys

import torch
import timing
import transformers

MODELS = {
    "llama-1b": ("Llama", [2048, 16, 32, 8, 8192, 128256], False, [(4, 2048), (1, 1024)]),
    "qwen2.5-1.5b": ("Qwen2", [1536, 28, 12, 2, 8960, 151936], True, [(4, 2048), (2, 4096)]),
    "mistral-s": ("Mistral", [4096, 8, 32, 8, 14336, 32000], False, [(4, 2048), (2, 4096), (1, 512)]),
    "llama-8b-s": ("Llama", [4096, 8, 32, 8, 14336, 128256], False, [(4, 2048)]),
}
KEYS = ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"]


def replace_kernels(variant):
    import liger_kernel.transformers as liger

    fused = variant == "liger"
    for apply in (liger.apply_liger_kernel_to_llama, liger.apply_liger_kernel_to_qwen2, liger.apply_liger_kernel_to_mistral):
        apply(rope=True, rms_norm=True, swiglu=True, fused_linear_cross_entropy=fused, cross_entropy=False)


def measure(family, figures, tied, batch, sequence, recompute):
    config = getattr(transformers, f"{family}Config")(
        **dict(zip(KEYS, figures)), tie_word_embeddings=tied, max_position_embeddings=8192, sliding_window=None,
        attn_implementation="sdpa", use_cache=False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = getattr(transformers, f"{family}ForCausalLM")(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, config.vocab_size, (batch, sequence), device="cuda")

    def step():
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return timing.measure(step)


def main():
    variant = sys.argv[1]
    if variant != "hugging-face":
        replace_kernels(variant)
    for name, (family, figures, tied, shapes) in MODELS.items():
        for batch, sequence in shapes:
            for recompute in (False, True) if (batch, sequence) == (4, 2048) else (False,):
                row = {"kind": variant, "model": name, "micro_batch": batch, "sequence": sequence, "recompute": recompute}
                print(json.dumps(row | measure(family, figures, tied, batch, sequence, recompute)), flush=True)
                gc.collect()
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
