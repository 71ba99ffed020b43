"""Steps of T5 as Hugging Face's library runs it on the GPU at hand, one JSON object a line.

    python3 t5.py bf16 >> steps.jsonl
    python3 t5.py amp >> steps.jsonl
    python3 t5.py adapters >> steps.jsonl

Weights, gradients and moments in bfloat16, or in 32 bits under autocast, or frozen beside PEFT's adapters; fused AdamW, dropout
of 0.1 as configured.
"""
import gc
import json
import sys

import torch
import timing
import transformers

KEYS = ["d_model", "d_kv", "d_ff", "num_layers", "num_heads", "vocab_size"]
MODELS = {
    "t5-base": ([768, 64, 3072, 12, 12, 32128], "relu", True, [(16, 512, 114, False), (64, 512, 114, False), (8, 1024, 228, False)]),
    "t5-large": ([1024, 64, 4096, 24, 16, 32128], "relu", True, [(16, 512, 114, False), (32, 512, 512, False), (32, 512, 114, True)]),
    "t5-3b": ([1024, 128, 16384, 24, 32, 32128], "relu", True, [(8, 512, 114, False), (16, 512, 114, True)]),
    "flan-t5-xl": ([2048, 64, 5120, 24, 32, 32128], "gated-gelu", False,
                   [(8, 512, 114, False), (4, 1024, 256, False), (16, 512, 512, True)]),
}
ADAPTERS = {
    "t5-base": [(16, "q v", (32, 512, 114, False))],
    "t5-large": [(16, "q k v o wi wo", (16, 512, 114, False))],
    "flan-t5-xl": [(8, "q v", (8, 512, 114, False)), (16, "q k v o wi_0 wi_1 wo", (8, 512, 128, True))],
}


def measure(precision, figures, feed, tied, shape, rank=0, targets=""):
    batch, source, target, recompute = shape
    config = transformers.T5Config(
        **dict(zip(KEYS, figures)), feed_forward_proj=feed, tie_word_embeddings=tied, use_cache=False, decoder_start_token_id=0)
    mixed = precision == "amp"
    torch.set_default_dtype(torch.float32 if mixed else torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.T5ForConditionalGeneration(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if rank:
        import peft

        if recompute:
            model.enable_input_require_grads()
        config_of_adapters = peft.LoraConfig(r=rank, target_modules=targets.split())
        model = peft.get_peft_model(model, config_of_adapters, autocast_adapter_dtype=False).cuda()
    trained = [own for own in model.parameters() if own.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    tokens = torch.randint(0, config.vocab_size, (batch, source), device="cuda")
    labels = torch.randint(0, config.vocab_size, (batch, target), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=mixed):
            loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return timing.measure(step) | {"trained": sum(own.numel() for own in trained)}


def main():
    precision = sys.argv[1]
    for name, (figures, feed, tied, shapes) in MODELS.items():
        runs = ADAPTERS.get(name, []) if precision == "adapters" else [(0, "", shape) for shape in shapes]
        for rank, targets, shape in runs:
            row = {"precision": precision, "model": name, "rank": rank, "targets": targets, "shape": shape}
            print(json.dumps(row | measure(precision, figures, feed, tied, shape, rank, targets)), flush=True)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
