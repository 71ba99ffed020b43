"""Records a decoder in training under several plans, four ranks on one machine: Kineto traces and lengths of steps.

    python3 record.py FOLDER [cpu | cuda]        starts four ranks for every plan; needs PyTorch 2.6 or later
    python3 record.py --pack PLANS.tar.xz TRACE.json.gz...        traces with what an import reads, for tests

Ranks exchange over gloo on CPUs, and over NCCL on one GPU: each rank claims to be another host (NCCL_HOSTID), so that NCCL accepts
ranks that share a device. For every plan: the trace of rank 0 (three steps), and in steps.json what each plan's steps took without
the profiler, and what python/stepcast/profiler tells of module and plan.
"""
import gzip
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEVICE = os.environ.get('STEPCAST_DEVICE', 'cpu')
RANKS, LAYERS, WIDTH, HEADS, SEQUENCE, BATCH, VOCABULARY = 4, 4, 512, 8, 128, 8, 4096
if DEVICE == 'cuda':
    WIDTH, HEADS, SEQUENCE = 1024, 16, 512
PLANS = ('ddp', 'ddp-tensor', 'fsdp', 'fsdp-tensor', 'tensor', 'pipeline', 'experts')


def loaded(name):
    path = HERE / f'../../python/stepcast/profiler/{name}.py'
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def rank(plan, folder):
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.nn import functional

    sys.path.insert(0, str(HERE / '../../kit'))
    import decoders

    torch.manual_seed(0)
    torch.set_num_threads(3)
    torch.set_default_device(DEVICE)
    dist.init_process_group('nccl' if DEVICE == 'cuda' else 'gloo')
    own, number = dist.get_rank(), dist.get_world_size()
    shape = decoders.Shape('llama', WIDTH, HEADS, HEADS, 4 * WIDTH, SEQUENCE, BATCH)

    class Exchange(torch.autograd.Function):
        """Tokens go to the ranks of their experts, and their gradients come back."""

        @staticmethod
        def forward(context, x, group):
            context.group, received = group, torch.empty_like(x)
            dist.all_to_all_single(received, x.contiguous(), group=group)
            return received

        @staticmethod
        def backward(context, grad):
            back = torch.empty_like(grad)
            dist.all_to_all_single(back, grad.contiguous(), group=context.group)
            return back, None

    class Expert(nn.Module):
        """A block, then one expert of each rank: tokens are divided equally."""

        def __init__(self, group):
            super().__init__()
            self.block, self.group = decoders.Block(shape), group
            self.expert = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            x = self.block(x)
            return x + Exchange.apply(self.expert(Exchange.apply(x, self.group)), self.group)

    class Blocks(nn.Module):
        def __init__(self, layers, first, last, block=lambda: decoders.Block(shape)):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH) if first else None
            self.blocks = nn.ModuleList(block() for _ in range(layers))
            self.norm = decoders.norm(shape) if last else None
            self.out = nn.Linear(WIDTH, VOCABULARY, bias=False) if last else None

        def forward(self, x):
            x = self.embedding(x) if self.embedding is not None else x
            for block in self.blocks:
                x = block(x)
            return self.out(self.norm(x)) if self.out is not None else x

    def tensor(model, mesh):
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        for block in model.blocks:
            ways = {name: ColwiseParallel() for name in ('q', 'k', 'v', 'gate', 'up')}
            ways |= {name: RowwiseParallel() for name in ('out', 'down')}
            parallelize_module(block, mesh, ways)
            block.heads //= mesh.size()
            block.groups //= mesh.size()
        return model

    tokens = torch.randint(VOCABULARY, (BATCH, SEQUENCE))
    loss_of = lambda out: functional.cross_entropy(out.view(-1, VOCABULARY), tokens.view(-1))  # noqa: E731
    step = None
    if plan == 'pipeline':
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B
        layers = LAYERS // number
        model = Blocks(layers, own == 0, own == number - 1)
        stage = PipelineStage(model, own, number, torch.device(DEVICE))
        schedule = Schedule1F1B(stage, BATCH, loss_fn=lambda out, y: functional.cross_entropy(out.view(-1, VOCABULARY), y.view(-1)))
        optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)

        def step():
            optimiser.zero_grad()
            if own == 0:
                schedule.step(tokens)
            else:
                schedule.step(target=tokens) if own == number - 1 else schedule.step()
            optimiser.step()
    else:
        if plan == 'experts':
            mesh = init_device_mesh(DEVICE, (number // 2, 2), mesh_dim_names=('dp', 'ep'))
            model = Blocks(LAYERS, True, True, lambda: Expert(mesh['ep'].get_group()))
        else:
            model = Blocks(LAYERS, True, True)
        if plan == 'experts':
            data = mesh['dp']
        elif 'tensor' in plan and plan != 'tensor':
            mesh = init_device_mesh(DEVICE, (number // 2, 2), mesh_dim_names=('dp', 'tp'))
            data, model = mesh['dp'], tensor(model, mesh['tp'])
        elif plan == 'tensor':
            data, model = None, tensor(model, init_device_mesh(DEVICE, (number,), mesh_dim_names=('tp',)))
        else:
            data = init_device_mesh(DEVICE, (number,), mesh_dim_names=('dp',))
        if plan.startswith('fsdp'):
            from torch.distributed.fsdp import fully_shard
            for block in model.blocks:
                fully_shard(block, mesh=data)
            fully_shard(model, mesh=data)
        elif plan == 'ddp':
            model = nn.parallel.DistributedDataParallel(model)
        optimiser = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=False)

        def sums():
            """Gradients of replicas whose blocks are divided over ranks: one all-reduce each, after the backward pass."""
            for weight in model.parameters():
                grad = weight.grad
                dist.all_reduce(grad.to_local() if hasattr(grad, 'to_local') else grad, group=data.get_group())

        def step():
            optimiser.zero_grad()
            loss_of(model(tokens)).backward()
            if plan in ('ddp-tensor', 'experts'):
                sums()
            optimiser.step()

    finish = torch.cuda.synchronize if DEVICE == 'cuda' else lambda: None
    for _ in range(4):
        step()
    times = []
    for _ in range(12):
        dist.barrier()
        finish()
        start = time.perf_counter()
        step()
        finish()
        times.append(time.perf_counter() - start)
    from torch.profiler import ProfilerActivity, profile, schedule as steps
    write = lambda kineto: own or kineto.export_chrome_trace(f'{folder}/{plan}.json.gz')  # noqa: E731
    order = steps(wait=0, warmup=2, active=3, repeat=1)
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (DEVICE == 'cuda')
    with profile(activities=activities, record_shapes=True, schedule=order, on_trace_ready=write) as kineto:
        for _ in range(5):
            step()
            kineto.step()
    if own == 0:
        found = {'plan': plan, 'step_s': times}
        try:
            found['split'] = vars(loaded('split').split(model, {}))
            found['decoder'] = loaded('decoder').decoder(getattr(model, 'module', model), SEQUENCE)
        except Exception:
            found['error'] = traceback.format_exc()
        Path(f'{folder}/{plan}.steps.json').write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def main(folder, device='cpu'):
    os.environ['STEPCAST_DEVICE'] = device
    rows = []
    for plan in PLANS:
        with tempfile.TemporaryDirectory() as own:
            port = str(29500 + PLANS.index(plan))
            job = {'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port, 'WORLD_SIZE': str(RANKS), 'GLOO_SOCKET_IFNAME': 'lo'}
            job |= {'NCCL_SOCKET_IFNAME': 'lo', 'NCCL_IB_DISABLE': '1'}
            ranks = [
                subprocess.Popen([sys.executable, __file__, '--rank', plan, own], 
                                 env=os.environ | job | {'RANK': str(number), 'NCCL_HOSTID': str(number)},
                                 stderr=subprocess.PIPE, text=True)
                for number in range(RANKS)
            ]
            try:
                told = [each.communicate(timeout=90)[1][-1500:] for each in ranks]
            except subprocess.TimeoutExpired:
                for each in ranks:
                    each.kill()
                told = ['took too long']
            if any(each.returncode for each in ranks):
                rows.append({'plan': plan, 'failed': told})
                print(plan, 'failed', told[0], file=sys.stderr)
                continue
            rows.append(json.loads(Path(f'{own}/{plan}.steps.json').read_text()))
            Path(f'{folder}/{plan}.json.gz').write_bytes(Path(f'{own}/{plan}.json.gz').read_bytes())
            print(plan, 'median', statistics.median(rows[-1]['step_s']), rows[-1].get('error', ''), file=sys.stderr)
    Path(f'{folder}/steps.json').write_text(json.dumps(rows, indent=1))


CATEGORIES = ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation', 'cuda_runtime', 'cuda_driver', 'user_annotation',
              'cpu_op')
CALLS = ('Launch', 'Memcpy', 'Memset', 'Synchronize')
KEPT = {'correlation', 'bytes', 'grid', 'block', 'Input Dims', 'Input type', 'Sequence number', 'In msg nelems', 'Out msg nelems', 'dtype',
        'Process Group Name', 'Process Group Description', 'Group size', 'Collective name'}


def pack(archive, *traces):
    """Leaves out arrows, metadata and arguments that no import reads; times are to 0.1 us, from the first event."""
    with tarfile.open(archive, 'w:xz', preset=9) as packed:
        for trace in traces:
            with gzip.open(trace) as file:
                whole = json.load(file)
            events = [event for event in whole['traceEvents'] if event.get('ph') == 'X' and event.get('cat') in CATEGORIES]
            events = [event for event in events if not event['cat'].startswith('cuda_') or any(word in event['name'] for word in CALLS)]
            first = min(event['ts'] for event in events)
            for event in events:
                event['args'] = {key: value for key, value in event.get('args', {}).items() if key in KEPT}
                event['ts'], event['dur'] = round(event['ts'] - first, 1), round(event['dur'], 1)
            events.sort(key=lambda event: (event['cat'], event['ts']))
            kept = {key: whole[key] for key in ('schemaVersion', 'deviceProperties', 'distributedInfo') if key in whole}
            text = json.dumps(kept | {'traceEvents': events}, separators=(',', ':')).encode()
            entry = tarfile.TarInfo(f'{Path(trace).parent.name}-{Path(trace).name.removesuffix(".gz")}')
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text))


if __name__ == '__main__':
    {'--rank': rank, '--pack': pack}[sys.argv[1]](*sys.argv[2:]) if sys.argv[1].startswith('--') else main(*sys.argv[1:])
