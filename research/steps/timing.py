"""How the scripts of this folder time a step: the median of ten after four, and the peak of allocated memory."""
import statistics

import torch


def measure(step):
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
    return {"step_ms": statistics.median(times), "bytes": torch.cuda.max_memory_allocated()}
