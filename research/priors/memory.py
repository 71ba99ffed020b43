"""Peak memory of a training step, counted from the layers. Nothing is fitted to a network; nothing is fitted."""
import json

from common import *

WINOGRAD = 2.25   # input and output tiles of F(4x4, 3x3) hold 36 numbers for 16
FFT = 121.        # a 3x3 filter of 9 numbers becomes 32 x 17 complex ones in tiled FFT convolutions


def kept(l, before, after, element, amp):
    """Bytes that a layer keeps for the backward pass, per sample."""
    k, i, o = l['k'], l['i'], l['o']
    if k in ('square', 'pointwise', 'window', 'grouped', 'depthwise', 'stem'):
        if k == 'stem':
            return i * (element + (4 if amp else 0))           # the batch itself, and its cast
        unkept = before is not None and before['k'] in ('bn', 'add', 'mul', 'ln') and before['o'] == i
        return i * element if unkept else 0
    if k == 'bn':
        return i * element
    if k == 'ln':
        return i * 4
    if k == 'act':
        if l['kind'] == 'gelu_new':
            return o * (16 if amp else 24)                     # separate operations
        return (i + o if l['kind'] in ('gelu', 'silu', 'hardswish', 'relu6') else o) * element
    if k == 'pool':
        return o * (element + (8 if l['kind'] == 'max' else 0))
    if k == 'gap':
        return o * element
    if k == 'concat':
        return 0 if after is not None and after['k'] == 'bn' else o * element
    if k == 'dropout':
        return o
    if k == 'linear':
        if amp:
            return i * element if before is not None and before['k'] in ('ln', 'linear', 'embed') else 0   # every product casts its input
        return i * element if before is not None and before['k'] == 'ln' else 0
    if k == 'attention':
        return (i + o) * element
    if k == 'mul':
        return i * element
    return 0


def peak(net, batch, precision, optimiser, tuned=True, detail=False):
    amp = precision.startswith('amp')
    element = 2. if amp else 4.
    L = net.layers
    n = len(L)
    keep = [batch * kept(l, L[i - 1] if i else None, L[i + 1] if i + 1 < n else None, element, amp) for i, l in enumerate(L)]
    logits = batch * L[-1]['o']
    decoder = any(l.get('kind') == 'gelu_new' for l in L)
    loss = logits * ((2 if amp else 0) + 4 + 4 + (4 if decoder else 0))   # logits, log-softmax, its gradient; decoders also cast the logits
    P = net.params
    static = P * (4 + {'sgd': 4, 'plain': 0, 'adamw': 8}[optimiser] + (2 if amp else 0))   # weights, states, cast weights
    left, gradients = sum(keep), 0.
    top = static + left + loss
    for i in range(n - 1, -1, -1):
        gradients += 4 * sum(L[i]['t'])
        top = max(top, static + left + gradients + batch * (L[i]['i'] + L[i]['o']) * element)
        left -= keep[i]
    square = [l for l in L if l['k'] == 'square']
    work = 0.
    if tuned and not amp and square:   # the fastest algorithm in 32 bits, as cudnn.benchmark finds it
        work = max(WINOGRAD * (l['i'] + l['o']) * 4 * batch for l in square) + max(FFT * 4 * l['w'] for l in square)
    return (top + work, static, sum(keep), work) if detail else top + work


def rows():
    out = []
    for line in open(f'{DATA}/measured/settings_h200.jsonl'):
        r = json.loads(line)
        if r['kind'] == 'settings':
            net = nets.build({'bert-base': 'bert-base-mlm'}.get(r['model'], r['model']))
            total, static, keep, work = peak(net, r['batch'], r['precision'], r['optimiser'], r['cudnn_benchmark'], True)
            out.append(dict(model=r['model'], batch=r['batch'], precision=r['precision'], measured=r['peak_allocated'], predicted=total, static=static, kept=keep, workspace=work))
    return pd.DataFrame(out)
