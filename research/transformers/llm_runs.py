"""Writes validation/llm-runs/runs.csv.gz: published runs of transformers as scenarios of names.

    python3 research/transformers/llm_runs.py ../shared/data/published validation/llm-runs/runs.csv.gz

Reads llm_runs.csv.gz, llm_foundry_mpt_fsdp_h100.csv, nvidia_megatron_bridge_perf_summary.csv and
dlperf_gpt_v100_3d_parallel.csv, whose notes are in llm_runs.md and README.md beside them. Left out: adapters, BERT,
hybrids with state-space layers, samples that are not packed, tensor-parallel experts (Llama 4 Maverick on H100), runs
that nobody tuned (marin), and whatever lacks a plan.
"""

import csv
import gzip
import io
import re
import sys

from scenario import COLUMNS, columns

# Imbalance of experts with the model's own routing: the fullest of eight ranks has 1.65 times the mean, by which the long sequences of the
# ModelZoo slow down.
UNEVEN = 1.65
BITS = {"bf16": "16", "fp16": "16"}

# Model of a row: base of the zoo, or a GPT of this width, number of heads and vocabulary.
MODELS = {
    "GPT-3-175B": "gpt3-175b", "Llama-2-7B": "llama2-7b", "Llama-2-70B": "llama2-70b", "Llama-3-8B": "llama3-8b",
    "Llama-3.1-8B": "llama3-8b", "Llama-3-70B": "llama3-70b", "Llama-3.1-70B": "llama3-70b", "LLAMA3_70B": "llama3-70b",
    "Llama-3.1-405B": "llama3.1-405b", "Nemotron4-15B": "nemotron4-15b", "Nemotron4-340B": "nemotron4-340b",
    "Qwen3-235B-A22B": "qwen3-235b-a22b", "Qwen3-30B-A3B": "qwen3-30b-a3b", "Qwen3_30B_a3B": "qwen3-30b-a3b",
    "DeepSeek-V3": "deepseek-v3", "GPT OSS 120B": "gpt-oss-120b", "GPT-OSS-20B": "gpt-oss-20b",
    "Llama-3.2-3B": "llama3.2-3b", "Llama-like 1.34B": "nanotron-1b", "Llama-like 3.57B": "nanotron-3b",
    "Llama-like 8.86B": "nanotron-8b", "Llama-4-Scout-17B-16E": "llama4-scout", "Llama-4-Maverick-17B-128E": "llama4-maverick", "GPT-5B": (24, 4096, 32, 51200), "GPT-20B": (44, 6144, 48, 51200),
}
LAYERS = {"gpt3-175b": 96, "llama2-7b": 32, "llama2-70b": 80, "llama3-8b": 32, "llama3-70b": 80, "llama3.1-405b": 126,
          "nemotron4-15b": 32, "nemotron4-340b": 96, "qwen3-235b-a22b": 94, "qwen3-30b-a3b": 48, "deepseek-v3": 61,
          "gpt-oss-120b": 36, "gpt-oss-20b": 24, "llama3.2-3b": 28, "llama4-scout": 48, "llama4-maverick": 48, "nanotron-1b": 16, "nanotron-3b": 28, "nanotron-8b": 32}
# Tied embeddings and vocabulary of nanotron's sizes follow from their numbers of parameters.
CUSTOM = {
    "nanotron-1b": "hidden=2048 heads=32 mlp-width=8192 vocabulary=131072 tied=true",
    "nanotron-3b": "hidden=3072 heads=24 mlp-width=8192 vocabulary=131072 tied=true",
    "nanotron-8b": "hidden=4096 heads=32 mlp-width=14336 vocabulary=131072",
}
DEVICES = {"H100-SXM": "h100-sxm5", "H200-SXM": "h200-sxm", "B200": "b200", "GB200": "gb200", "A100-SXM-80GB": "a100-sxm4-80gb",
           "A100-SXM-40GB": "a100-sxm4-40gb", "MI300X": "mi300x", "MI325X": "mi325x", "DGX-H100": "h100-sxm5",
           "Gaudi2": "gaudi2", "DGX-B200": "b200", "DGX-B300": "b300", "DGX-GB200": "gb200", "DGX-GB300": "gb300"}
# Links inside a machine, between machines, and ports of a machine.
LINKS = {"h100-sxm5": ("nvlink4", "infiniband-ndr", 8), "h200-sxm": ("nvlink4", "infiniband-ndr", 8),
         "b200": ("nvlink5", "infiniband-ndr", 8), "b300": ("nvlink5", "infiniband-xdr", 8),
         "gb200": ("nvlink5", "infiniband-ndr", 64), "gb300": ("nvlink5", "infiniband-xdr", 64),
         "a100-sxm4-80gb": ("nvlink3", "infiniband-hdr", 8), "a100-sxm4-40gb": ("nvlink3", "infiniband-hdr", 8),
         "mi300x": ("xgmi-mi300", "infiniband-ndr", 8), "mi325x": ("xgmi-mi300", "infiniband-ndr", 8),
         "gaudi2": ("gaudi2-ports", "roce-100g", 24), "tesla-v100-sxm2-16gb": ("nvlink2", "infiniband-edr", 1)}


def number(text, default=1):
    found = re.match(r"[\d.]+", str(text or "").strip())
    return float(found.group()) if found else default


def whole(text, default=1):
    return int(number(text, default))


# Networks that rows name, and their ports of a machine.
NETWORKS = {"EFA 3200": ("efa-100g", 32), "GPUDirect-TCPX": ("tcpx-200g", 4), "4x ConnectX-7 IB NDR": ("infiniband-ndr", 4),
            "8x 200Gbe Infiniband": ("infiniband-hdr", 8)}


def machine(device, gpus, network=""):
    """Devices of a machine and its links: racks of 72 count as machines of 64, of which jobs take whole ones."""
    inside, outside, ports = LINKS[device]
    outside, ports = next((own for name, own in NETWORKS.items() if name in network and "gb" not in device), (outside, ports))
    node = 64 if device.startswith("gb") else 8
    return {"device": device, "gpus": gpus, "node": min(node, gpus), "inside": inside, "outside": outside,
            "ports": max(1, ports * min(node, gpus) // node)}


def shape(model, layers):
    own = MODELS[model]
    if isinstance(own, tuple):
        return {"shape": "gpt", "layers": own[0], "hidden": own[1], "heads": own[2], "vocabulary": own[3]}
    return {"shape": own, "keys": CUSTOM.get(own), "layers": layers or LAYERS[own]}


def balanced(own, stages):
    """Layers of nanotron's stages: blocks go to a stage until the costs that it counts, of matrices alone, pass its share."""
    layers = LAYERS[own]
    hidden, mlp = (int(re.search(rf"{key}=(\d+)", CUSTOM[own]).group(1)) for key in ("hidden", "mlp-width"))
    layer = 4 * hidden * hidden + 3 * hidden * mlp
    each = (layers * layer + 131072 * hidden) / stages
    counts = [0] * stages
    stage = 0
    for place in range(1, layers + 1):
        counts[stage] += 1
        stage += place * layer > each * (stage + 1)
    return " stage-layers=[" + ",".join(map(str, counts)) + "]"


def ends(layers, stages):
    """Megatron counts embedding and output layer as a layer each where layers do not divide."""
    if layers % stages == 0 or (layers + 2) % stages or (layers + 2) // stages < 2:
        return ""
    each = (layers + 2) // stages
    return " stage-layers=[" + ",".join(str(each - (place in (0, stages - 1))) for place in range(stages)) + "]"


def megatron(layers, tensor, pipeline, chunks, context, expert, batch, micro, eight, sharding="zero-1", extra=""):
    text = f"tensor={tensor} sequence-parallel={str(tensor > 1).lower()} pipeline={pipeline}"
    chunks = chunks if pipeline > 1 else 1
    if chunks > 1:
        text += f" virtual-stages={chunks}"
    text += ends(layers, pipeline * chunks) if "stage-layers" not in extra else ""
    if context > 1:
        text += f" context={context}"
    if expert > 1:
        text += f" expert={expert}"
    text += f" sharding={sharding} micro-batch={micro} global-batch={batch} overlap=megatron{extra}"
    return text + (f" recipe={eight}" if eight else "") + " /precision=bf16"


def fsdp(batch, micro, overlap, states, recompute, eight, compiled, extra=""):
    text = f"sharding=zero-3 states={states} overlap={overlap} micro-batch={micro} global-batch={batch}{extra}"
    text += f" recompute={recompute}" if recompute else ""
    text += f" recipe={eight}" if eight else ""
    return text + " /precision=bf16" + (" /compiled=true" if compiled else "")


def bridge(folder):
    newest = {}
    for row in csv.DictReader(open(folder + "/nvidia_megatron_bridge_perf_summary.csv")):
        lora = "LoRA" in row["section"]
        if lora or row["precision"] == "" or "tokendrop" in row["model"]:
            continue
        keys = ["model", "system", "num_gpus", "gbs", "mbs", "seq_len", "tp", "pp", "cp", "ep"]
        eight = {"BF16": "", "MXFP8": "mxfp8", "FP8-MX": "mxfp8", "NVFP4": "nvfp4"}.get(row["precision"], "fp8")
        known = tuple(row[key] for key in keys) + (eight, whole(row["fsdp"], 0) > 1, whole(row["vp"]))
        if known in newest:  # the newest release stands first
            continue
        gpus = whole(row["num_gpus"])
        device = DEVICES[row["system"]]
        batch, micro, sequence = whole(row["gbs"]), whole(row["mbs"]), whole(row["seq_len"])
        if whole(row["fsdp"], 0) > 1:
            settings = fsdp(batch, micro, "megatron", "megatron-bf16", "", eight, False)
        else:
            # As NeMo's; experts of these rows have no tensor parallelism.
            extra = " overlap-products=true" if whole(row["tp"]) > 1 else ""
            settings = megatron(shape(row["model"], None)["layers"], whole(row["tp"]), whole(row["pp"]), whole(row["vp"]), whole(row["cp"]), whole(row["ep"]),
                                batch, micro, eight, extra=extra)
        tokens = number(row["tokens_per_sec_per_gpu"])
        newest[known] = {
            "family": f"Megatron-Bridge {'experts' if whole(row['ep']) > 1 else 'dense'}, {row['system'][4:]}",
            "framework": "Megatron-Bridge", "task": "full-finetune" if "SFT" in row["section"] else "pretrain",
            "format": eight or "bf16", "row": row["release"].split()[0],
            "source": row["source"], **shape(row["model"], None), "sequence": sequence, **machine(device, gpus),
            "settings": settings, "seconds": batch * sequence / (tokens * gpus),
        }
    return list(newest.values())


def foundry(folder):
    for row in csv.DictReader(open(folder + "/llm_foundry_mpt_fsdp_h100.csv")):
        large = row["Model"] == "30b"
        gpus, batch = whole(row["# GPUs"]), whole(row["GlobalBatchSize"])
        recompute = "layer" if row["Activation Checkpointing"] == "True" else ""
        tokens = number(row["Throughput (T/s/GPU)"]) * gpus
        # scripts/train/benchmarking: sweep.py asks for FlashAttention 2 for 7B at scale, submit_benchmarks.py for Triton's kernel otherwise.
        attention = "" if not large and gpus >= 128 else " attention=triton"
        yield {
            "family": "llm-foundry, H100", "framework": "llm-foundry", "task": "pretrain", "format": "bf16", "row": "",
            "source": row["source"], "shape": "gpt", "layers": 48 if large else 32, "hidden": 7168 if large else 4096,
            "heads": 56 if large else 32, "vocabulary": 50368, "sequence": row["SeqLen (T)"],
            **machine("h100-sxm5", gpus),
            "settings": fsdp(batch, whole(row["MicroBatchSize"]), "fsdp2", "fp32", recompute, False, False, attention),
            "seconds": batch * number(row["SeqLen (T)"]) / tokens,
        }


def dlperf(folder):
    for row in csv.DictReader(open(folder + "/dlperf_gpt_v100_3d_parallel.csv")):
        gpus, batch, data = whole(row["num_gpus"]), whole(row["global_batch"]), whole(row["dp"])
        for framework, key in (("Megatron-LM 2021", "megatron_seq_per_s"), ("OneFlow", "oneflow_seq_per_s")):
            micro = batch // data
            settings = (f"tensor={row['tp']} pipeline={row['pp']} data={data} micro-batch={micro} global-batch={batch} "
                        "overlap=none attention=unfused dropout=true states=mixed-fp16 recompute=layer /precision=fp16")
            yield {
                "family": f"DLPerf, V100, {framework}", "framework": framework, "task": "pretrain", "format": "fp16",
                "row": row["case"], "source": row["source"], "shape": "gpt", "layers": row["layers"],
                "hidden": row["hidden"], "heads": max(1, whole(row["hidden"]) // 64 if row["hidden"] != "1536" else 16),
                "vocabulary": row["vocab"], "sequence": row["seq_len"], **machine("tesla-v100-sxm2-16gb", gpus),
                "settings": settings, "seconds": batch / number(row[key]),
            }


def flops(model, sequence):
    """Operations of a sequence forward and backward, attention counted in full, as MaxText and nanotron printed them."""
    sizes = {"Llama-2-7B": (32, 4096, 11008, 32000), "Llama-like 1.34B": (16, 2048, 8192, 131072),
             "Llama-like 3.57B": (28, 3072, 8192, 131072), "Llama-like 8.86B": (32, 4096, 14336, 131072)}
    layers, hidden, mlp, vocabulary = sizes[model]
    weights = layers * (4 * hidden * hidden + 3 * hidden * mlp) + vocabulary * hidden
    return 6 * weights * sequence + 12 * layers * hidden * sequence * sequence


def megatron_flops(sequence):
    """Operations of a sequence of Qwen3-235B as Megatron-LM counts them: attention by half."""
    layers, hidden, heads, groups, width, inner, active, experts, vocabulary = 94, 4096, 64, 4, 128, 1536, 8, 128, 151936
    layer = hidden * width * (2 * heads + 2 * groups) + active * 3 * hidden * inner + experts * hidden
    return 6 * sequence * (layers * layer + vocabulary * hidden) + 6 * layers * heads * width * sequence * sequence


def recomputed(text):
    text = (text or "").lower()
    if "full" in text:
        return "layer"
    if "moe" in text:
        return "mlp"
    if "selective, per op" in text:
        return "operators"
    return ""


def runs(folder):
    rows = list(csv.DictReader(gzip.open(folder + "/llm_runs.csv.gz", "rt")))
    plan = lambda row: tuple(row[key] for key in ("source", "model", "accelerator", "accelerators", "tp", "pp", "cp", "global_batch"))
    chunks_of = {plan(row): row["vpp"] for row in rows if row["vpp"]}
    for row in rows:
        device = DEVICES.get(row["accelerator"])
        if row["task"] not in ("pretrain", "full-finetune") or device is None or row["model"] not in MODELS:
            continue
        if row["source"] in ("fms-acceleration", "ms-swift benchmark", "torchtune"):
            continue
        if "OOM" in row["figure_trust"] or row["figure_trust"] == "doubtful":
            continue
        gpus = whole(row["accelerators"])
        sequence = whole(row["seq_len"], 0) or 4096
        tensor, pipeline, context, expert = (whole(row[key]) for key in ("tp", "pp", "cp", "ep"))
        # Transformer Engine before 2.0, MaxText and Pax scale by earlier steps, torchao by a tensor or by rows.
        scaled = "fp8-row" if "row" in row["recipe"] else "fp8"
        eight = scaled if "torchtitan" in row["framework"] else "fp8-delayed"
        # Chunks that one release of a table does not state are those of the others.
        chunks, eight = whole(row["vpp"] or chunks_of.get(plan(row))), eight if row["precision"] == "fp8" else ""
        micro, batch = whole(row["micro_batch"], 0), whole(row["global_batch"], 0)
        stages = pipeline * (chunks if pipeline > 1 else 1)
        if (layers := whole(row["layers"], 0) or None) and layers < stages or row["etp"] not in ("", "1"):
            continue  # layers of every stage are not stated; experts divided by tensor parallelism
        data = gpus // (tensor * pipeline * context)
        source, framework = row["source"], row["framework"]
        seconds = number(row["steady_step_s"] or row["step_time_s"], 0.0)
        recompute = recomputed(row["recompute"])
        count = shape(row["model"], layers)["layers"]
        if "JAX" in framework and not row["recompute"]:
            recompute = "layer"  # MaxText's default remat_policy is full; Pax's GPT configurations save nothing
        if source == "maxtext tables a3":
            # Four sequences a device: llama2_7b of MaxText's end_to_end/gpu/a3.
            micro, batch = 4, 4 * gpus
            seconds = batch * flops(row["model"], sequence) / (number(row["tflops_per_acc"]) * 1e12 * gpus)
        if source == "Megatron-MoE-ModelZoo" and not seconds:
            seconds = batch * megatron_flops(sequence) / (number(row["tflops_per_acc"]) * 1e12 * gpus)
        if source == "nanotron":
            seconds = batch * flops(row["model"], sequence) / (number(row["mfu_pct"]) / 100 * 989e12 * gpus)
        if source == "gpu-recipes MaxText":
            micro = batch // gpus
        if source.startswith("Primus"):
            if not micro:
                continue
            batch = batch or micro * data * (8 if pipeline > 1 else 1)
            seconds = seconds or batch * sequence / (number(row["tokens_per_s_per_acc"]) * gpus)
        if not (micro and batch and seconds):
            continue
        if batch % (micro * data):
            continue
        fully = "FSDP" in row["sharding"]
        if fully and ("JAX" in framework):
            # XLA fuses kernels, calls cuDNN for attention and hides collectives by its own schedule.
            ahead = fsdp(batch, micro, "megatron", "fp32", recompute, eight, True)
            if "dcn" in row["notes"] and gpus > 8:
                ahead = ahead.replace("sharding=zero-3", "sharding=hsdp sharding-group=8")
            settings = ahead
        elif "torchtitan" in framework:
            settings = fsdp(batch, micro, "torchtitan", "fp32", recompute, eight, row["compile"] == "yes")
        elif "AutoModel" in framework:
            extra = f" expert={expert}" if expert > 1 else ""
            extra += f" tensor={tensor}" if tensor > 1 else ""
            extra += f" pipeline={pipeline}" if pipeline > 1 else ""
            extra += f" context={context}" if context > 1 else ""
            extra += " implementation=megatron" if "TE" in row["attention"] else ""
            extra += " dispatcher=flex" if "DeepEP" in row["attention"] else ""
            settings = fsdp(batch, micro, "fsdp2", "bf16", recompute, eight, False, extra)
        elif "Megatron-FSDP" in row["sharding"]:
            settings = megatron(count, tensor, 1, 1, context, expert, batch, micro, eight, "zero-3",
                                f" recompute={recompute}" if recompute else "")
        elif fully:
            # Primus shards by FSDP and computes by Transformer Engine.
            extra = " implementation=megatron" if source.startswith("Primus") else ""
            settings = fsdp(batch, micro, "fsdp2", "fp32", recompute, eight, False, extra)
        elif framework == "nanotron":
            sharding = "zero-1" if row["sharding"] == "ZeRO-1" else "none"
            extra = balanced(MODELS[row["model"]], pipeline) if pipeline > 1 else ""
            # A loop of PyTorch with fused norms and positions and FlashAttention 2, without a fused loss; DDP's buckets have 25 MiB.
            extra += " overlap-weights=false implementation=liger loss=eager attention=flash bucket=13107200"
            settings = megatron(count, tensor, pipeline, 1, context, expert, batch, micro, eight, sharding, extra)
        else:
            extra = f" recompute={recompute}" if recompute else ""
            # NeMo's and MLPerf's configurations of dense models overlap tensor parallelism with products (userbuffers).
            extra += " overlap-products=true" if tensor > 1 and expert == 1 and "NeMo" in framework else ""
            # Transformer Engine of early 2024 prefers FlashAttention on every device, and has context parallelism with it alone.
            extra += " attention=flash" if row["framework_version"].startswith("24.03") else ""
            extra += " dispatcher=alltoall" if "dispatcher A2A" in row["notes"] else ""
            extra += " overlap-experts=true" if "1f1b overlap" in row["notes"] else ""
            # Routing as it is against forced balance: 1.09 to 1.24 times the step of the same plan.
            extra += f" expert-imbalance={UNEVEN}" if "real routing" in row["notes"] else ""
            settings = megatron(count, tensor, pipeline, chunks, context, expert, batch, micro, eight, "zero-1", extra)
        machines = machine(device, gpus, row["network"])
        if "torchtitan" in framework and device == "h100-sxm5":
            # The machines of torchtitan's own table, which says it.
            machines["device"] = "h100-sxm5|memory-rate=2.4 TB/s|power=500 W"
        formats = "fp8" if eight else "bf16"
        short = {"NeMo (Megatron core)": "NeMo", "NeMo AutoModel (PyTorch, FSDP2)": "AutoModel", "MaxText (JAX)": "MaxText",
                 "PaxML (JAX)": "PaxML", "torchtitan + torchao": "torchtitan", "Primus (Megatron)": "Primus",
                 "Megatron core": "Megatron", "DeepSpeed (Habana 1.14) + Megatron-DeepSpeed": "Megatron-DeepSpeed"}.get(framework, framework)
        family = "MLPerf" if source.startswith("mlperf") else source
        yield {
            "family": f"{family}, {short}, {row['accelerator'].split('-')[0]}, {formats}", "framework": short,
            "task": row["task"], "format": formats, "row": row["row_id"], "source": row["source_path"],
            **shape(row["model"], layers), "sequence": sequence, **machines, "settings": settings,
            "seconds": seconds,
        }


def tpus(folder):
    """Tables of MaxText on TPU slices: dimensions stand in the model's name; slices are joined by the data-centre network."""
    chips = {"TPU-v4": ("tpu-v4", "ici-v4"), "TPU-v5e": ("tpu-v5e", "ici-v5e"), "TPU-v5p": ("tpu-v5p", "ici-v5p")}
    for row in csv.DictReader(gzip.open(folder + "/llm_runs.csv.gz", "rt")):
        if not row["source"].startswith("maxtext tables v"):
            continue
        sizes = re.search(r"L(\d+) d(\d+) heads (\d+) x (\d+) mlp (\d+)", row["model"])
        layers, hidden, heads, width, mlp = (int(size) for size in sizes.groups())
        gpus, tensor, sequence, batch = (whole(row[key]) for key in ("accelerators", "tp", "seq_len", "global_batch"))
        slices = whole(row["system"])
        domain = gpus // slices
        gated = row["source"] != "maxtext tables v4"  # as their numbers of parameters say
        weights = layers * (4 * hidden * heads * width + (3 if gated else 2) * hidden * mlp) + 32000 * hidden
        work = 6 * weights * sequence + 12 * layers * heads * width * sequence * sequence
        seconds = batch * work / (number(row["tflops_per_acc"]) * 1e12 * gpus)
        # "minimal" keeps what products compute, which attention is not.
        recompute = "attention" if row["recompute"] == "minimal" else "layer"
        extra = f" tensor={tensor} sequence-parallel=true" if tensor > 1 else ""
        settings = fsdp(batch, batch * tensor // gpus, "megatron", "fp32", recompute, "", True, extra)
        if slices > 1:
            settings = settings.replace("sharding=zero-3", f"sharding=hsdp sharding-group={domain // tensor}")
        device, links = chips[row["accelerator"]]
        kind = "" if gated else " mlp=gelu"
        yield {
            "family": f"MaxText, {row['accelerator'].replace('-', ' ')}", "framework": "MaxText", "task": "pretrain",
            "format": "bf16", "row": row["row_id"], "source": row["source_path"],
            "shape": f"maxtext-{hidden}", "layers": layers,
            "keys": f"hidden={hidden} heads={heads} head-width={width} mlp-width={mlp} vocabulary=32000{kind}", "sequence": sequence, "device": device,
            "gpus": gpus, "node": 4, "inside": f"{links}|domain={domain}", "outside": "tpu-dcn", "ports": 1,
            "settings": settings, "seconds": seconds,
        }


def recipes(folder):
    """Google's recipes and MLPerf runs of MaxText on v5p: micro-batches are those of a chip, groups of FSDP as the notes say."""
    for row in csv.DictReader(gzip.open(folder + "/llm_runs.csv.gz", "rt")):
        if row["accelerator"] != "TPU-v5p" or row["model"] not in MODELS or not row["step_time_s"]:
            continue
        gpus, tensor, sequence, batch = (whole(row[key]) for key in ("accelerators", "tp", "seq_len", "global_batch"))
        fsdp_ranks = number(re.sub(r"\D*", "", row["sharding"].split("(")[0]), 0) or gpus // tensor
        # What MaxText's policies save: products ("minimal", "save_dot"), chosen ones, or nothing.
        kept = row["recompute"] == "minimal" or row["recompute"].startswith("save_dot")
        recompute = "attention" if kept else "operators" if "context" in row["offload"] else "layer"
        extra = f" tensor={tensor} sequence-parallel=true" if tensor > 1 else ""
        extra += " offload=activations" if row["offload"] else ""
        settings = fsdp(batch, whole(row["micro_batch"]) * tensor, "megatron", "fp32", recompute,
                        "int8" if row["precision"] == "int8" else "", True, extra)
        if fsdp_ranks < gpus // tensor:
            settings = settings.replace("sharding=zero-3", f"sharding=hsdp sharding-group={int(fsdp_ranks)}")
        source = "Google MLPerf" if row["source"].startswith("mlperf") else "Google recipes"
        yield {
            "family": f"{source}, MaxText, TPU v5p", "framework": "MaxText", "task": "pretrain",
            "format": row["precision"], "row": row["row_id"], "source": row["source_path"], **shape(row["model"], None),
            "sequence": sequence, "device": "tpu-v5p", "gpus": gpus, "node": 4, "inside": f"ici-v5p|domain={gpus}",
            "outside": "tpu-dcn", "ports": 1, "settings": settings, "seconds": number(row["step_time_s"]),
        }


def neuron(folder):
    """Pre-training on Trainium, whose cores are devices of their own: half a chip. Rows whose ranks are not their cores are left out."""
    sizes = {"GPT3-23B": (28, 8192, 64), "GPT3-46B": (56, 8192, 64), "GPT3-175B": (96, 12288, 96)}
    for row in csv.DictReader(gzip.open(folder + "/llm_runs.csv.gz", "rt")):
        cores = 2 * whole(row["accelerators"])
        tensor, pipeline, data, micro, batch = (whole(row[key]) for key in ("tp", "pp", "dp", "micro_batch", "global_batch"))
        if row["accelerator"] != "Trainium1" or row["precision"] != "bf16" or tensor * pipeline * data != cores:
            continue
        if row["model"] in sizes:
            layers, hidden, heads = sizes[row["model"]]
            own = {"shape": "gpt", "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": 50304}
        elif row["model"] == "Llama2-7B":
            own = shape("Llama-2-7B", None)
        else:
            continue  # BERT
        settings = megatron(own["layers"], tensor, pipeline, 1, 1, 1, batch, micro, "").replace("overlap=megatron", "overlap=none")
        yield {
            "family": "Neuron, NxD, Trainium", "framework": "NeuronX Distributed", "task": "pretrain", "format": "bf16",
            "row": row["row_id"], "source": row["source_path"], **own, "sequence": whole(row["seq_len"]),
            "device": "trainium1|bf16=95 TFLOP/s|memory=16 GiB|memory-rate=410 GB/s", "gpus": cores, "node": 32,
            "inside": "neuronlink2", "outside": "efa-100g", "ports": 8, "settings": settings, "seconds": number(row["step_time_s"]),
        }


# Tests that Megatron-LM itself runs on one machine of eight, most of them so small that the host bounds them: name, device, tensor,
# pipeline, chunks, context, micro-batch, shape, medians of "iteration-time" of its golden values. Rows whose timers synchronise
# (`--timing-log-level: 2`) are left out. Gradients and weights do not overlap but where the name says so.
SMALL, LARGE = "gpt 12 512 8 50304 1024", "gpt-7b 32 4096 32 131072 8192"
TESTS = (
    ("gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files", "h100", 1, 1, 1, 1, 4, SMALL, 0.0597, "073db759"),
    ("gpt3_mcore_te_tp2_pp2_cross_entropy_loss_fusion", "h100", 2, 2, 1, 1, 4, SMALL, 0.1175, "256f6065"),
    ("gpt3_mcore_te_tp4_pp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce", "h100", 4, 1, 1, 1, 4, SMALL, 0.2000, "08165aba"),
    ("gpt3_mcore_te_tp1_pp4_vp1", "h100", 1, 4, 3, 1, 4, SMALL, 0.0951, "08165aba"),
    ("gpt3_mcore_te_tp2_pp2_cp2", "h100", 2, 2, 1, 2, 4, SMALL, 0.2922, "1e186831"),
    ("gpt3_7b_tp4_pp1_memory_speed", "h100", 4, 1, 1, 1, 2, LARGE, 1.0967, "09eb91e5"),
    ("gpt3_7b_tp1_pp4_memory_speed", "h100", 1, 4, 8, 1, 1, LARGE, 1.0606, "070712a0"),
    ("gpt3_mcore_te_tp2_pp2", "a100", 2, 2, 1, 1, 4, SMALL, 0.2155, "57a02672"),
    ("gpt3_mcore_te_tp1_pp4_vp1", "a100", 1, 4, 3, 1, 4, SMALL, 0.1355, "346696ae"),
    ("gpt3_mcore_te_tp2_pp2_cp2", "a100", 2, 2, 1, 2, 4, SMALL, 0.5139, "1fb2a0ca"),
)


def tests():
    devices = {"h100": "h100-sxm5", "a100": "a100-sxm4-80gb"}
    for name, device, tensor, pipeline, chunks, context, micro, model, seconds, commit in TESTS:
        kind, layers, hidden, heads, vocabulary, sequence = model.split()
        large = kind != "gpt"
        # Tests that say nothing of attention have FlashAttention 2: deterministic, Transformer Engine has nothing else with dropout.
        attention = " attention=flash" if context > 1 or large or tensor == 4 else " attention=unfused"
        overlaps = large or "overlap_grad_reduce" in name
        extra = attention + ("" if context > 1 else " dropout=true") + ("" if overlaps else " overlap-gradients=false overlap-weights=false")
        sharding = "zero-1" if large or "dist_optimizer" in name else "none"
        settings = megatron(int(layers), tensor, pipeline, chunks, context, 1, 8 if large else 32, micro, "", sharding, extra)
        if context == 1:
            settings = settings.replace("sequence-parallel=true", "sequence-parallel=false")
        yield {
            "family": f"Megatron-LM tests, {device.upper()}", "framework": "Megatron", "task": "pretrain", "format": "bf16",
            "row": name, "source": f"NVIDIA/Megatron-LM tests/functional_tests/test_cases/gpt/{name} @{commit}",
            "shape": kind, "layers": layers, "hidden": hidden, "heads": heads, "vocabulary": vocabulary, "sequence": sequence,
            "keys": f"hidden={hidden} heads={heads} kv-heads=8 mlp-width=16384 mlp=gelu vocabulary={vocabulary}", **machine(devices[device], 8), "settings": settings,
            "seconds": seconds,
        }


def main():
    folder, out = sys.argv[1:]
    rows = [*bridge(folder), *foundry(folder), *dlperf(folder), *runs(folder), *tpus(folder), *recipes(folder), *neuron(folder), *tests()]
    text = io.StringIO()
    text.write("# Published runs of transformers; made by research/transformers/llm_runs.py, which says what is assumed.\n"
               "# publisher: whose runs are left out together. model, rated, plan, strategy: keys of these tables of a scenario.\n"
               "# Every row names its source.\n")
    names = ["family", "publisher", "framework", "task", "format", "bits", "row", "source", *COLUMNS]
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        publisher = re.split("[, ]", row["family"])[0]
        bits = BITS.get(row["format"], "8 and 4")
        writer.writerow(columns(row) | {"publisher": publisher, "bits": bits, "seconds": f"{row['seconds']:.6g}"})
    with open(out, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(text.getvalue().encode())


main()
