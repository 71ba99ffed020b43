"""One GPU: step time from the data sheet, the network's layers, batch, precision."""
import gzip
import json

from common import *
import devices

HOST_NORM = 3.   # step = (gpu^3 + host^3)^(1/3)

PRIORS = {
    'square': (1.4, .25, 'of fp32 peak', '3x3 convolutions of stride 1 on ordinary units: Winograd needs 2.25 times fewer products, and reaches less'),
    'conv': (.8, .2, 'of fp32 peak', 'other convolutions'),
    'linear': (.85, .15, 'of fp32 peak', 'matrix products, attention'),
    'stem': (.4, .4, 'of fp32 peak', 'the first convolution (3 channels), on ordinary units in every precision'),
    'depthwise': (.15, .5, 'of fp32 peak', 'on ordinary units in every precision'),
    'grouped': (.3, .4, 'of fp32 peak', 'on ordinary units in every precision'),
    'dual': (.65, .2, 'factor', 'GA10x, Ada, Hopper, Blackwell: twice the FP32 units behind the same registers and issue slots'),
    'kepler': (.5, .3, 'factor', 'Kepler: clock below boost, issue slots not filled; its root for the memory'),
    'amd': (.5, .3, 'factor', 'AMD: libraries less tuned, dual issue seldom used'),
    'power': (.4, .3, 'exponent', 'clock under load = (W per TFLOP/s of the board / of the full-power board of its generation)^power; dynamic power grows with the cube of the clock, so at least 1/3'),
    'tensor': (.8, .1, 'of tensor peak', 'tensor units when data arrive in time'),
    'feed_square': (8., .4, 'x lane rate', 'what registers and shared memory feed into tensor units, 16 bits; lane rate = 64 multiply-adds a cycle and multiprocessor'),
    'feed_conv': (8., .4, 'x lane rate', 'the same, other convolutions'),
    'feed_linear': (8., .4, 'x lane rate', 'the same, matrix products'),
    'feed_tf32': (.6, .25, 'factor', 'the same in TF32, whose operands are twice as wide: between 0.5 and 1'),
    'channels_last': (1.1, .15, 'factor', 'convolutions in this layout'),
    'memory': (.7, .15, 'of memory rate', 'passes over tensors; streaming kernels reach 0.75-0.9'),
    'amp': (1.1, .15, 'factor', 'bytes of passes in automatic mixed precision: casts'),
    'compiled': (.6, .3, 'factor', 'bytes of element-wise passes after XLA and the like'),
    'op': (2.5e-5, .4, 's', 'host time of a layer, forward and backward'),
    'gradient': (8e-5, .5, 's', 'host time of a gradient tensor, with its update'),
    'host_amp': (1.3, .2, 'factor', 'host time in automatic mixed precision'),
    'start': (7e-6, .4, 's', 'device time to start and drain a kernel, three a layer'),
}
GROUPS = {
    'ordinary units': ['square', 'conv', 'linear', 'stem', 'depthwise', 'grouped', 'dual', 'kepler', 'amd'],
    'tensor units': ['tensor', 'feed_square', 'feed_conv', 'feed_linear'],
    'memory': ['memory'],
    'host': ['op', 'gradient', 'start'],
}
EFFECTS = list(GROUPS) + ['software', 'input of real data', 'network on a device', 'row']
F = ['square', 'conv', 'stem', 'linear', 'depthwise', 'grouped']


def features(net):
    """Operations of a step for each sample by class (three times the forward ones; the first convolution has no
    gradient of its input), passes over elements, gradient tensors, layers."""
    f = dict.fromkeys(F, 0.)
    bytes2, elementwise, wide = 0., 0., 0.   # elements in the number format; those that a compiler fuses; always 32 bits
    for l in net.layers:
        k, i, o = l['k'], l['i'], l['o']
        cls = {'pointwise': 'conv', 'window': 'conv', 'attention': 'linear'}.get(k, k)
        if cls in f:
            f[cls] += (2 if k == 'stem' else 3) * l['f']
            bytes2 += 3 * (i + o)
        if k == 'attention':
            bytes2 += 12 * l['scores']
        elif k == 'bn':
            elementwise += 8 * o
        elif k == 'ln':
            wide += 7 * o
        elif k == 'act':
            elementwise += (20 if l['kind'] == 'gelu_new' else 5) * o
        elif k in ('add', 'dropout'):
            elementwise += 4 * o
        elif k == 'mul':
            elementwise += 6 * o
        elif k in ('pool', 'gap', 'concat', 'embed'):
            elementwise += 2 * (i + o)
    return dict(**f, passes=bytes2, elementwise=elementwise, wide=wide, weights=float(net.params), ops=len(net.layers), tensors=len(net.tensors))


def formula(p, c, detail=False):
    brand = np.where(c.kepler, p['kepler'], 1) * np.where(c.amd, p['amd'], 1) * c.throttle ** p['power']
    ordinary = c.fp32 * brand * np.where(c.dual, p['dual'], 1)
    layout = np.where(c.channels_last, p['channels_last'], 1)

    def rate(share, feed):
        lane = feed * c.lane * np.where(c.tf32, p['feed_tf32'], 1)
        tensor = brand / (1 / (p['tensor'] * c.peak) + 1 / lane)
        return np.where(c.tensor, tensor, share * ordinary)
    square = rate(p['square'], p['feed_square']) * layout
    conv = rate(p['conv'], p['feed_conv']) * layout
    linear = rate(p['linear'], p['feed_linear'])
    computing = c.batch * (c.square / square + c.conv / conv + c.linear / linear
                           + (c.stem / p['stem'] + c.depthwise / p['depthwise'] + c.grouped / p['grouped']) / ordinary)
    stream = c.memory * p['memory'] * np.where(c.kepler, np.sqrt(p['kepler']), 1)
    width = c.width * np.where(c.amp, p['amp'], 1)
    fused = np.where(c.compiled, p['compiled'], 1)
    passes = c.batch * (width * (c.passes + fused * c.elementwise) + 4 * fused * c.wide) / stream
    update = c.weights * (12 + np.where(c.no_update, 0, np.where(c.adam, 28, 20)) + np.where(c.amp, 6, 0)) / stream
    gpu = computing + passes + update + 3 * p['start'] * c.ops
    host = (p['op'] * c.ops + p['gradient'] * c.tensors) * np.where(c.amp, p['host_amp'], 1) * np.where(c.compiled, .5, 1)
    step = (gpu ** HOST_NORM + host ** HOST_NORM) ** (1 / HOST_NORM)
    return (step, computing, passes, update, host) if detail else step


MODEL = Model(PRIORS, formula, GROUPS)
NUMBERS = F + ['passes', 'elementwise', 'wide', 'weights', 'ops', 'tensors', 'batch', 'fp32', 'peak', 'memory', 'lane', 'throttle', 'width']
FLAGS = ['tensor', 'tf32', 'amp', 'compiled', 'no_update', 'adam', 'channels_last', 'dual', 'amd', 'kepler']


def describe(s):
    """Adds features and data-sheet figures to rows with model, sequence, image, device, precision, batch, …"""
    D = devices.load()
    none = lambda v: None if v != v else v
    cache = {}
    for k in set(zip(s.model, s.sequence.map(none, na_action=None), s.image.map(none, na_action=None))):
        k = tuple(none(v) for v in k)
        net = nets.build(*k)
        cache[k] = features(net) if net else None
    f = pd.DataFrame([cache[tuple(none(v) for v in k)] or {} for k in zip(s.model, s.sequence, s.image)], index=s.index)
    s = pd.concat([s, f], axis=1)
    dev = [D[d] for d in s.device]
    for k in ('fp32', 'memory', 'lane', 'throttle'):
        s[k] = [d[k] for d in dev]
    gen = pd.Series([d['gen'] for d in dev], index=s.index)
    s['tf32'] = (s.precision == 'tf32') & np.array([d['tf32'] is not None for d in dev])
    half = s.precision.isin(['amp-fp16', 'amp-bf16', 'fp16', 'bf16'])
    s['tensor'] = s.tf32 | (half & np.array([d['fp16'] is not None for d in dev]))
    s['peak'] = [d['tf32'] if t else d['fp16'] if h else d['fp32'] for d, t, h in zip(dev, s.tf32, s.tensor)]
    s['width'] = np.where(half, 2., 4.)
    s['amp'] = s.precision.str.startswith('amp')
    s['dual'], s['amd'], s['kepler'] = gen.isin(devices.DUAL), gen.isin(devices.AMD), gen == 'kepler'
    s['adam'] = s.optimiser.fillna('').str.contains('adam') | s.model.str.contains('bert|gpt')
    s['compiled'] = s.compiled.notna()
    s['no_update'] = s.notes.fillna('').str.contains('no optimiser')
    s['real'] = s['data'].fillna('').str.startswith('real')
    s['channels_last'] = s.notes.fillna('').str.contains('channels last')
    return s


def h200():
    """The project's own steps on an H200, as two more sources."""
    out = []
    alias = {'bert-base': 'bert-base-mlm'}
    for line in open(f'{DATA}/measured/settings_h200.jsonl'):
        r = json.loads(line)
        if r['kind'] == 'settings':
            out.append(dict(family='h200 settings', framework='PyTorch 2.11', model=alias.get(r['model'], r['model']), precision=r['precision'], batch=r['batch'],
                            throughput=r['batch'] / r['step_ms'] * 1e3, optimiser=r['optimiser'], notes='channels last' if r['channels_last'] else ''))
    for line in gzip.open(f'{DATA}/measured/steps_h200.jsonl.gz', 'rt'):
        r = json.loads(line)
        if 'iter_ms' in r:
            out.append(dict(family='h200 steps', framework='PyTorch 2.11', model=alias.get(r['model'], r['model']), precision={'bf16': 'amp-bf16'}.get(r['precision'], r['precision']),
                            batch=r['batch'], throughput=r['batch'] / r['iter_ms'] * 1e3, optimiser='sgd', notes=''))
    return pd.DataFrame(out).assign(device='h200-sxm', source='measured/', zoo='yes')


def rows():
    s = pd.read_csv(f'{DATA}/published/single_gpu.csv')
    s['own'] = False
    h = h200()
    h['own'] = True
    s = pd.concat([s, h], ignore_index=True)
    s['own'] = s.own.astype(bool)
    # image size not stated: left out, as the table's README says; yolov3: neither operations nor image size stated
    s = s[~((s.family == 'azure') & (s.model == 'mobilenet-v2')) & (s.model != 'yolov3')]
    s = describe(s).copy()
    s['T'] = s.batch / s.throughput
    s['src'] = s.family
    s['cell'] = s.family + '|' + s.device + '|' + s.precision
    return s


def cols(s):
    return Cols(s, NUMBERS, FLAGS)


def train(s, curvature=False):
    return MODEL.fit(cols(s), s['T'].to_numpy(), capped(s.family + '|' + s.device, 10), .25, curvature)


def parts(x, s):
    c = cols(s)
    # two effects without a constant: software as a whole, and an input pipeline of real data
    J = np.column_stack([MODEL.sensitivities(x, c), np.ones(len(s)), s.real.to_numpy(dtype=float)])
    return MODEL.predict(x, c), J, np.ones(len(s))


def variances(x, s):
    T, J, K = parts(x, s)
    # families of measurements here: one source on one device
    return components(np.log(s['T'].to_numpy() / T), J, K, s.family.to_numpy(), (s.family + s.device + s.model).to_numpy(),
                      start=np.array([.2] * len(GROUPS) + [.1, .4, .15, .15]), width=np.array([1.] * len(GROUPS) + [1., .2, 1., 1.]), clip=.8)


def left_out(s, by, intervals=False):
    out, sd, df = np.zeros(len(s)), np.zeros(len(s)), np.zeros(len(s))
    for k in s[by].unique():
        te = (s[by] == k).to_numpy()
        x = train(s[~te])
        T, J, K = parts(x, s[te])
        out[te] = T
        if intervals:
            sd[te], df[te] = spread(variances(x, s[~te]), J, K), s[~te].family.nunique() - 1
    return (out, sd, df) if intervals else out


def score(lr):
    a = np.abs(lr)
    return math.exp(a.mean()), (a < math.log(1.65)).mean(), math.exp(np.quantile(a, .9))
