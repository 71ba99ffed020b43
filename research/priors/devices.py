"""Data-sheet figures of the catalog."""
import os
import re
import tomllib

CATALOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../catalog/devices.toml')

# Generation decides three factors: Kepler, AMD, and twice the FP32 units behind the same issue slots ("dual").
DUAL = ('ga10x', 'ada', 'hopper', 'blackwell', 'gb20x')
AMD = ('cdna', 'rdna')
# Full-power board of a generation: W for each TFLOP/s of FP32 (vector).
FULL_POWER = {'kepler': 30., 'maxwell': 37., 'pascal': 22., 'volta': 19., 'turing': 18., 'ampere': 19., 'ga10x': 9.8, 'ada': 5.4, 'hopper': 10.4, 'blackwell': 13., 'gb20x': 5.4, 'cdna': 13., 'rdna': 7.}


def number(text):
    value, unit = re.fullmatch(r'([\d.]+) ?(\S+)', text).groups()
    return float(value) * {'GHz': 1e9, 'MHz': 1e6, 'TFLOP/s': 1e12, 'PFLOP/s': 1e15, 'GB/s': 1e9, 'TB/s': 1e12, 'GiB': 2 ** 30, 'W': 1.}[unit]


def load():
    """name: fp32, tf32, fp16 (operations a second; None without tensor units), memory (B/s), lane, throttle, generation."""
    out = {}
    for name, d in tomllib.load(open(CATALOG, 'rb')).items():
        if d['kind'] != 'gpu' or name == 'tesla-k80-board' or d['generation'] == 'gaudi':
            continue
        gen = d['generation']
        fp32 = number(d['clock']) * d['units'] * d['flops-per-cycle']
        power = number(d['power']) if 'power' in d else None
        vector = fp32 / 2 if gen == 'cdna' else fp32
        out[name] = dict(
            fp32=fp32, tf32=number(d['tf32']) if 'tf32' in d else None, fp16=number(d['fp16']) if 'fp16' in d else None,
            memory=number(d['memory-rate']), gen=gen,
            # rate of 64 multiply-adds a cycle on each multiprocessor: what shared memory and registers are built for
            lane=fp32 / 2 if gen in DUAL + ('cdna',) or d['flops-per-cycle'] == 4 else fp32,
            throttle=min(1., power / (vector / 1e12) / FULL_POWER[gen]) if power else 1.)
    return out
