"""Steps of T5 as Hugging Face's library runs it on the GPU at hand, one JSON object a line.

    python3 measure.py >> steps.jsonl

Weights, gradients and moments in bfloat16, fused AdamW, dropout of 0.1 as configured; the median of ten steps after four, and the peak
of allocated memory.
"""
import gc
import json
import statistics

import torch
import transformers

KEYS = ["d_model", "d_kv", "d_ff", "num_layers", "num_heads", "vocab_size"]
MODELS = {
    "t5-base": ([768, 64, 3072, 12, 12, 32128], "relu", True, [(16, 512, 114, False), (64, 512, 114, False), (8, 1024, 228, False)]),
    "t5-large": ([1024, 64, 4096, 24, 16, 32128], "relu", True, [(16, 512, 114, False), (32, 512, 512, False), (32, 512, 114, True)]),
    "t5-3b": ([1024, 128, 16384, 24, 32, 32128], "relu", True, [(8, 512, 114, False), (16, 512, 114, True)]),
    "flan-t5-xl": ([2048, 64, 5120, 24, 32, 32128], "gated-gelu", False,
                   [(8, 512, 114, False), (4, 1024, 256, False), (16, 512, 512, True)]),
}


def measure(figures, feed, tied, batch, source, target, recompute):
    config = transformers.T5Config(
        **dict(zip(KEYS, figures)), feed_forward_proj=feed, tie_word_embeddings=tied, use_cache=False, decoder_start_token_id=0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.T5ForConditionalGeneration(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, config.vocab_size, (batch, source), device="cuda")
    labels = torch.randint(0, config.vocab_size, (batch, target), device="cuda")

    def step():
        model(input_ids=tokens, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(11)]
    for event in events[:-1]:
        event.record()
        step()
    events[-1].record()
    torch.cuda.synchronize()
    times = [begin.elapsed_time(end) for begin, end in zip(events, events[1:])]
    parameters = sum(own.numel() for own in model.parameters())
    attention = model.config._attn_implementation
    return {"step_ms": statistics.median(times), "bytes": torch.cuda.max_memory_allocated(), "parameters": parameters,
            "attention": attention}


def main():
    for name, (figures, feed, tied, shapes) in MODELS.items():
        for batch, source, target, recompute in shapes:
            row = {"model": name, "micro_batch": batch, "sequence": source, "target": target, "recompute": recompute}
            print(json.dumps(row | measure(figures, feed, tied, batch, source, target, recompute)), flush=True)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
