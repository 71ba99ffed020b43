"""Data-sheet figures of devices.toml beside this file and of the project's catalog."""
import os
import re
import tomllib

CATALOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../catalog/devices.toml')
HERE = os.path.dirname(os.path.abspath(__file__))

# Generation decides three factors: Kepler, AMD, and twice the FP32 units behind the same issue slots ("dual").
GENERATION = {
    'kepler': ('tesla-k',), 'maxwell': ('titan-x-maxwell',), 'pascal': ('gtx-10', 'tesla-p', 'p40'), 'volta': ('titan-v', 'tesla-v100'),
    'turing': ('quadro-rtx', 'tesla-t4', 'rtx-20'), 'ampere': ('a100',), 'ga10x': ('a10', 'rtx-30'), 'ada': ('l4', 'rtx-6000-ada', 'rtx-40'),
    'hopper': ('h100', 'h200'), 'blackwell': ('b200',), 'cdna': ('mi',), 'rdna': ('rx-',)}
DUAL = ('ga10x', 'ada', 'hopper', 'blackwell')
AMD = ('cdna', 'rdna')
# Full-power board of a generation: W for each TFLOP/s of FP32 (vector).
FULL_POWER = {'kepler': 30., 'maxwell': 37., 'pascal': 22., 'volta': 19., 'turing': 18., 'ampere': 19., 'ga10x': 9.8, 'ada': 5.4, 'hopper': 10.4, 'blackwell': 13., 'cdna': 13., 'rdna': 7.}
# Board power of the devices in the project's catalog, which has no such key yet (makers' data sheets).
POWER = {'tesla-k20x': 235, 'tesla-k80': 150, 'tesla-p100-pcie-16gb': 250, 'tesla-p100-sxm2': 300, 'tesla-v100-pcie-16gb': 250, 'tesla-v100-pcie-32gb': 250,
         'tesla-v100-sxm2-16gb': 300, 'tesla-v100-sxm2-32gb': 300, 'quadro-rtx-4000': 160, 'tesla-t4': 70, 'rtx-2080-ti': 250, 'a100-pcie-40gb': 250, 'a100-pcie-80gb': 300,
         'a100-sxm4-40gb': 400, 'a100-sxm4-80gb': 400, 'h100-pcie': 350, 'h100-sxm5': 700, 'h200-sxm': 700, 'b200': 1000, 'gtx-1060-6gb': 120}


def number(text):
    value, unit = re.fullmatch(r'([\d.]+) ?(\S+)', text).groups()
    return float(value) * {'GHz': 1e9, 'MHz': 1e6, 'TFLOP/s': 1e12, 'PFLOP/s': 1e15, 'GB/s': 1e9, 'TB/s': 1e12, 'GiB': 2 ** 30, 'W': 1.}[unit]


def generation(name):
    order = [(p, g) for g, ps in GENERATION.items() for p in ps]
    return next(g for p, g in sorted(order, key=lambda e: -len(e[0])) if name.startswith(p))


def load():
    """name: fp32, tf32, fp16 (operations a second; None without tensor units), memory (B/s), lane, throttle, generation."""
    out = {}
    for path in (CATALOG, f'{HERE}/devices.toml'):
        for name, d in tomllib.load(open(path, 'rb')).items():
            if d['kind'] != 'gpu' or name == 'tesla-k80-board':
                continue
            gen = generation(name)
            fp32 = number(d['clock']) * d['units'] * d['flops-per-cycle']
            power = number(d['power']) if 'power' in d else POWER.get(name)
            vector = fp32 / 2 if gen == 'cdna' else fp32
            out[name] = dict(
                fp32=fp32, tf32=number(d['tf32']) if 'tf32' in d else None, fp16=number(d['fp16']) if 'fp16' in d else None,
                memory=number(d['memory-rate']), gen=gen,
                # rate of 64 multiply-adds a cycle on each multiprocessor: what shared memory and registers are built for
                lane=fp32 / 2 if gen in DUAL + ('cdna',) or d['flops-per-cycle'] == 4 else fp32,
                throttle=min(1., power / (vector / 1e12) / FULL_POWER[gen]) if power else 1.)
    return out
