"""Keywords of scenarios; written from the declarations of their keys."""

from typing import Any, TypedDict


class Keywords(TypedDict, total=False):
    """Keys of a scenario that every call takes by name."""

    accumulation: Any
    adapters: Any
    all_reduce: Any
    architecture: Any
    as_published: Any
    asynchronous: Any
    batch: Any
    beside: Any
    carbon: Any
    channels_last: Any
    cluster: Any
    compiled: Any
    config: Any
    currency: Any
    custom: Any
    data: Any
    detection: Any
    energy: Any
    epochs: Any
    evaluation_every: Any
    evaluation_samples: Any
    failures: Any
    frozen: Any
    fusion: Any
    input: Any
    interval: Any
    lengths: Any
    machine: Any
    machines: Any
    methods: Any
    network: Any
    network_hour: Any
    node_hour: Any
    node_rate: Any
    onnx: Any
    optimiser: Any
    oyama2016: Any
    packing: Any
    power: Any
    precision: Any
    price: Any
    profile: Any
    pue: Any
    rate: Any
    rate_range: Any
    repair: Any
    restart: Any
    samples: Any
    sequence: Any
    server_hour: Any
    servers: Any
    simulate: Any
    sizes: Any
    slow_factor: Any
    slow_share: Any
    slow_time: Any
    snapshot: Any
    spares: Any
    storage: Any
    storage_hour: Any
    strategy: Any
    synchronisation: Any
    transformer: Any
    worker_hour: Any
    zeng2023: Any
    zoo: Any


class ScenarioKeywords(Keywords, total=False):
    """Those, and names that some calls use for parameters of their own."""

    bucket: Any
    budget: Any
    context: Any
    count: Any
    deadline: Any
    expert: Any
    frameworks: Any
    global_batch: Any
    late_day: Any
    loss: Any
    may_fit: Any
    micro_batch: Any
    model: Any
    nodes: Any
    offers: Any
    offload: Any
    overlap_prefetch: Any
    per_stage: Any
    pipeline: Any
    plan: Any
    recompute: Any
    recompute_some: Any
    schedule: Any
    sequence_parallel: Any
    sharding: Any
    sharding_group: Any
    shares: Any
    tensor: Any
    tensor_across_nodes: Any
    tokens: Any
    virtual_stages: Any
    workers: Any
