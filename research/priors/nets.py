"""Layer lists of the networks in both tables: what the zoo of stepcast knows, and a few more (timm, torchvision).

A layer is a dict: k (class), f (forward operations per sample, a multiply-add is two), i, o (elements read and
written per sample), w (weights), t (gradient tensors as list of sizes), kept (elements kept for the backward pass,
per sample, in the number format of activations), keptw (bytes kept per sample whatever the format), rows, depth, cols.
"""
import math
import os
from functools import lru_cache


class Net:
    def __init__(self, name):
        self.name, self.layers = name, []
        self.need = {}

    def add(self, k, f=0., i=0., o=0., t=(), **kw):
        self.layers.append(dict(k=k, f=float(f), i=float(i), o=float(o), t=list(t), w=float(sum(t)), **kw))

    # an activation is a tuple (channels, height, width) or (tokens, width)
    def conv(self, x, c, k=3, s=1, p=None, g=1, bias=False, kw=None, pw=None):
        ci, h, w = x
        kw = k if kw is None else kw
        p = (k - 1) // 2 if p is None else p
        pw = ((kw - 1) // 2 if kw != k else p) if pw is None else pw
        ho, wo = (h + 2 * p - k) // s + 1, (w + 2 * pw - kw) // s + 1
        rows = ho * wo
        depth = ci // g * k * kw
        cls = 'depthwise' if g > 1 and g == ci else 'stem' if ci <= 4 else 'grouped' if g > 1 else \
            'pointwise' if k == kw == 1 else 'square' if (k == 3 and kw == 3 and s == 1) else 'window'
        t = [c * depth] + ([c] if bias else [])
        self.add(cls, 2. * rows * depth * c, ci * h * w, c * rows, t, rows=rows, depth=depth, cols=c, kern=k * kw, stride=s, ci=ci, g=g)
        return (c, ho, wo)

    def bn(self, x):
        n = math.prod(x)
        self.add('bn', 0, n, n, [x[0], x[0]])
        return x

    def ln(self, x):
        n = math.prod(x)
        self.add('ln', 0, n, n, [x[-1], x[-1]])
        return x

    def lnc(self, x):
        n = math.prod(x)
        self.add('ln', 0, n, n, [x[0], x[0]])
        return x

    def act(self, x, kind='relu'):
        n = math.prod(x)
        self.add('act', 0, n, n, kind=kind)
        return x

    def sum(self, x):
        n = math.prod(x)
        self.add('add', 0, 2 * n, n)
        return x

    def pool(self, x, k, s, p=0, kind='max', ceil=False):
        c, h, w = x
        r = (lambda a: math.ceil(a)) if ceil else (lambda a: math.floor(a))
        ho, wo = r((h + 2 * p - k) / s) + 1, r((w + 2 * p - k) / s) + 1
        self.add('pool', 0, c * h * w, c * ho * wo, kind=kind)
        return (c, ho, wo)

    def gap(self, x, size=1):
        self.add('gap', 0, math.prod(x), x[0] * size * size)
        return (x[0], size, size)

    def cat(self, xs):
        c = sum(x[0] for x in xs)
        y = (c,) + tuple(xs[0][1:])
        n = math.prod(y)
        self.add('concat', 0, n, n, inputs=len(xs))
        return y

    def drop(self, x):
        n = math.prod(x)
        self.add('dropout', 0, n, n)
        return x

    def linear(self, x, c, bias=True, tied=False):
        """x: (rows, width) or (width,)"""
        rows = math.prod(x[:-1]) if len(x) > 1 else 1
        d = x[-1]
        t = [] if tied else [d * c] + ([c] if bias else [])
        self.add('linear', 2. * rows * d * c, rows * d, rows * c, t, rows=rows, depth=d, cols=c)
        if tied:
            self.layers[-1]['w'] = float(d * c)
        return tuple(x[:-1]) + (c,)

    def attention(self, x, heads, causal=False, window=None, fused=True):
        s, d = x
        keys = window or s
        f = 4. * s * keys * d / (2 if causal else 1)
        self.add('attention', f, 3 * s * d, s * d, scores=heads * s * keys, kept_fused=fused)
        return x

    def embed(self, x, rows, d):
        self.add('embed', 0, x[0], x[0] * d, [rows * d])
        return (x[0], d)

    def fc(self, x, c, bias=True):
        return self.linear((math.prod(x),), c, bias)

    @property
    def params(self):
        return sum(sum(l['t']) for l in self.layers)

    @property
    def gflop(self):
        return sum(l['f'] for l in self.layers) / 1e9

    @property
    def tensors(self):
        return [t for l in self.layers for t in l['t']]


def cbr(n, x, c, k=3, s=1, p=None, g=1, act='relu', kw=None, pw=None):
    x = n.conv(x, c, k, s, p, g, kw=kw, pw=pw)
    n.bn(x)
    return n.act(x, act) if act else x


def alexnet():
    n = Net('alexnet'); x = (3, 224, 224)
    x = n.act(n.conv(x, 64, 11, 4, 2, bias=True)); x = n.pool(x, 3, 2)
    x = n.act(n.conv(x, 192, 5, 1, 2, bias=True)); x = n.pool(x, 3, 2)
    x = n.act(n.conv(x, 384, 3, 1, 1, bias=True)); x = n.act(n.conv(x, 256, 3, 1, 1, bias=True))
    x = n.act(n.conv(x, 256, 3, 1, 1, bias=True)); x = n.pool(x, 3, 2); x = n.gap(x, 6)
    x = (math.prod(x),); n.drop(x); x = n.act(n.linear(x, 4096)); n.drop(x); x = n.act(n.linear(x, 4096)); n.linear(x, 1000)
    return n


def vgg(cfg, bn=False, size=224, cifar=False):
    n = Net('vgg'); x = (3, size, size)
    for v in cfg:
        if v == 'M':
            x = n.pool(x, 2, 2)
        else:
            x = n.conv(x, v, 3, 1, 1, bias=True)
            if bn:
                n.bn(x)
            n.act(x)
    if cifar:
        x = n.linear((math.prod(x),), 512); n.act(x); x = n.linear(x, 512); n.linear(x, 10)
        return n
    x = n.gap(x, 7); x = (math.prod(x),)
    x = n.act(n.linear(x, 4096)); n.drop(x); x = n.act(n.linear(x, 4096)); n.drop(x); n.linear(x, 1000)
    return n


V = {11: [64, 'M', 128, 'M', 256, 256, 'M', 512, 512, 'M', 512, 512, 'M'],
     13: [64, 64, 'M', 128, 128, 'M', 256, 256, 'M', 512, 512, 'M', 512, 512, 'M'],
     16: [64, 64, 'M', 128, 128, 'M', 256, 256, 256, 'M', 512, 512, 512, 'M', 512, 512, 512, 'M'],
     19: [64, 64, 'M', 128, 128, 'M', 256, 256, 256, 256, 'M', 512, 512, 512, 512, 'M', 512, 512, 512, 512, 'M']}


def resnet(blocks, bottleneck, v1=False, groups=1, width=64, deep=False, se=False, size=224, cifar=False, classes=1000):
    n = Net('resnet'); x = (3, size, size)
    if cifar:
        x = cbr(n, x, 64, 3, 1)
    else:
        if deep:
            x = cbr(n, x, 32, 3, 2); x = cbr(n, x, 32); x = cbr(n, x, 64)
        else:
            x = cbr(n, x, 64, 7, 2)
        x = n.pool(x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        planes = 64 * 2 ** stage
        for b in range(count):
            s = 2 if stage and not b else 1
            ident = x
            if bottleneck:
                w = int(planes * width / 64) * groups
                out = planes * 4
                y = cbr(n, x, w, 1, s if v1 else 1)
                y = cbr(n, y, w, 3, 1 if v1 else s, g=groups)
                y = cbr(n, y, out, 1, act=None)
            else:
                out = planes
                y = cbr(n, x, out, 3, s); y = cbr(n, y, out, 3, act=None)
            if se:
                z = n.gap(y); z = n.act(n.conv(z, out // 16, 1, bias=True)); z = n.act(n.conv(z, out, 1, bias=True), 'sigmoid')
                n.add('mul', 0, 2 * math.prod(y), math.prod(y))
            if b == 0 and (s != 1 or ident[0] != out):
                if deep and s > 1:
                    i2 = n.pool(ident, 2, 2, 0, 'avg', True); cbr(n, i2, out, 1, act=None)
                else:
                    cbr(n, ident, out, 1, s, act=None)
            x = n.act(n.sum(y))
    x = n.gap(x)
    n.fc(x, classes)
    return n


def resnet_cifar_small(nblk):
    """ResNet-20/32/… of He et al. for 32×32."""
    n = Net('resnet32'); x = cbr(n, (3, 32, 32), 16)
    for st, c in enumerate((16, 32, 64)):
        for b in range(nblk):
            s = 2 if st and not b else 1
            y = cbr(n, x, c, 3, s); y = cbr(n, y, c, 3, act=None); x = n.act(n.sum(y))
    n.fc(n.gap(x), 10)
    return n


def densenet(blocks, growth, init):
    n = Net('densenet'); x = cbr(n, (3, 224, 224), init, 7, 2); x = n.pool(x, 3, 2, 1)
    for bi, count in enumerate(blocks):
        for j in range(count):
            if j:
                x = n.cat([(x[0] - growth, x[1], x[2]), (growth, x[1], x[2])])
            n.bn(x); n.act(x)
            y = cbr(n, x, 4 * growth, 1)
            y = n.conv(y, growth, 3)
            x = (x[0] + growth, x[1], x[2])
        x = n.cat([(x[0] - growth, x[1], x[2]), (growth, x[1], x[2])])
        n.bn(x); n.act(x)
        if bi < 3:
            x = n.conv(x, x[0] // 2, 1); x = n.pool(x, 2, 2, 0, 'avg')
    n.fc(n.gap(x), 1000)
    return n


def googlenet():
    n = Net('googlenet'); x = cbr(n, (3, 224, 224), 64, 7, 2); x = n.pool(x, 3, 2, 0, ceil=True)
    x = cbr(n, x, 64, 1); x = cbr(n, x, 192, 3); x = n.pool(x, 3, 2, 0, ceil=True)
    def inc(x, a, b1, b2, c1, c2, d):
        y = [cbr(n, x, a, 1)]
        y.append(cbr(n, cbr(n, x, b1, 1), b2, 3)); y.append(cbr(n, cbr(n, x, c1, 1), c2, 3))
        y.append(cbr(n, n.pool(x, 3, 1, 1), d, 1))
        return n.cat(y)
    x = inc(x, 64, 96, 128, 16, 32, 32); x = inc(x, 128, 128, 192, 32, 96, 64); x = n.pool(x, 3, 2, 0, ceil=True)
    for a in ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128)):
        x = inc(x, *a)
    x = n.pool(x, 2, 2, 0, ceil=True)
    for a in ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)):
        x = inc(x, *a)
    x = n.gap(x); n.drop(x); n.fc(x, 1000)
    return n


def inception3():
    n = Net('inception-v3'); x = (3, 299, 299)
    x = cbr(n, x, 32, 3, 2, 0); x = cbr(n, x, 32, 3, 1, 0); x = cbr(n, x, 64, 3, 1, 1); x = n.pool(x, 3, 2)
    x = cbr(n, x, 80, 1); x = cbr(n, x, 192, 3, 1, 0); x = n.pool(x, 3, 2)
    def A(x, pf):
        a = cbr(n, x, 64, 1); b = cbr(n, cbr(n, x, 48, 1), 64, 5); c = cbr(n, cbr(n, cbr(n, x, 64, 1), 96), 96)
        d = cbr(n, n.pool(x, 3, 1, 1, 'avg'), pf, 1); return n.cat([a, b, c, d])
    for pf in (32, 64, 64): x = A(x, pf)
    a = cbr(n, x, 384, 3, 2, 0); b = cbr(n, cbr(n, cbr(n, x, 64, 1), 96), 96, 3, 2, 0); c = n.pool(x, 3, 2); x = n.cat([a, b, c])
    def B(x, c7):
        a = cbr(n, x, 192, 1)
        b = cbr(n, x, c7, 1); b = cbr(n, b, c7, 1, p=0, kw=7, pw=3); b = cbr(n, b, 192, 7, p=3, kw=1, pw=0)
        c = cbr(n, x, c7, 1); c = cbr(n, c, c7, 7, p=3, kw=1, pw=0); c = cbr(n, c, c7, 1, p=0, kw=7, pw=3); c = cbr(n, c, c7, 7, p=3, kw=1, pw=0); c = cbr(n, c, 192, 1, p=0, kw=7, pw=3)
        d = cbr(n, n.pool(x, 3, 1, 1, 'avg'), 192, 1); return n.cat([a, b, c, d])
    for c7 in (128, 160, 160, 192): x = B(x, c7)
    a = cbr(n, cbr(n, x, 192, 1), 320, 3, 2, 0)
    b = cbr(n, x, 192, 1); b = cbr(n, b, 192, 1, p=0, kw=7, pw=3); b = cbr(n, b, 192, 7, p=3, kw=1, pw=0); b = cbr(n, b, 192, 3, 2, 0)
    x = n.cat([a, b, n.pool(x, 3, 2)])
    for _ in range(2):
        a = cbr(n, x, 320, 1)
        b = cbr(n, x, 384, 1); b1 = cbr(n, b, 384, 1, p=0, kw=3, pw=1); b2 = cbr(n, b, 384, 3, p=1, kw=1, pw=0)
        c = cbr(n, cbr(n, x, 448, 1), 384, 3); c1 = cbr(n, c, 384, 1, p=0, kw=3, pw=1); c2 = cbr(n, c, 384, 3, p=1, kw=1, pw=0)
        d = cbr(n, n.pool(x, 3, 1, 1, 'avg'), 192, 1); x = n.cat([a, b1, b2, c1, c2, d])
    x = n.gap(x); n.drop(x); n.fc(x, 1000)
    return n


def inception4():
    n = Net('inception-v4'); x = (3, 299, 299)
    r17 = lambda y, c: cbr(n, y, c, 1, p=0, kw=7, pw=3)
    r71 = lambda y, c: cbr(n, y, c, 7, p=3, kw=1, pw=0)
    x = cbr(n, x, 32, 3, 2, 0); x = cbr(n, x, 32, 3, 1, 0); x = cbr(n, x, 64)
    x = n.cat([n.pool(x, 3, 2), cbr(n, x, 96, 3, 2, 0)])
    a = cbr(n, cbr(n, x, 64, 1), 96, 3, 1, 0); b = cbr(n, r71(r17(cbr(n, x, 64, 1), 64), 64), 96, 3, 1, 0); x = n.cat([a, b])
    x = n.cat([cbr(n, x, 192, 3, 2, 0), n.pool(x, 3, 2)])
    for _ in range(4):
        x = n.cat([cbr(n, x, 96, 1), cbr(n, cbr(n, x, 64, 1), 96), cbr(n, cbr(n, cbr(n, x, 64, 1), 96), 96), cbr(n, n.pool(x, 3, 1, 1, 'avg'), 96, 1)])
    x = n.cat([cbr(n, x, 384, 3, 2, 0), cbr(n, cbr(n, cbr(n, x, 192, 1), 224), 256, 3, 2, 0), n.pool(x, 3, 2)])
    for _ in range(7):
        x = n.cat([cbr(n, x, 384, 1), r71(r17(cbr(n, x, 192, 1), 224), 256), r17(r71(r17(r71(cbr(n, x, 192, 1), 192), 224), 224), 256), cbr(n, n.pool(x, 3, 1, 1, 'avg'), 128, 1)])
    x = n.cat([cbr(n, cbr(n, x, 192, 1), 192, 3, 2, 0), cbr(n, r71(r17(cbr(n, x, 256, 1), 256), 320), 320, 3, 2, 0), n.pool(x, 3, 2)])
    r13 = lambda y, c: cbr(n, y, c, 1, p=0, kw=3, pw=1)
    r31 = lambda y, c: cbr(n, y, c, 3, p=1, kw=1, pw=0)
    for _ in range(3):
        b = cbr(n, x, 384, 1); c = r31(r13(cbr(n, x, 384, 1), 448), 512)
        x = n.cat([cbr(n, x, 256, 1), r13(b, 256), r31(b, 256), r13(c, 256), r31(c, 256), cbr(n, n.pool(x, 3, 1, 1, 'avg'), 256, 1)])
    n.fc(n.gap(x), 1000)
    return n


def mobile(cfg, stem=32, head=1280, act='relu6', size=224, first=True, se=False, acts=None):
    """cfg: (expand t, c, n, s, k, se)"""
    n = Net('mobile'); x = cbr(n, (3, size, size), stem, 3, 2, act=act)
    for row in cfg:
        t, c, reps, s, k, ses = row[:6]
        a = row[6] if len(row) > 6 else act
        for j in range(reps):
            i = x; h = int(round(i[0] * t))
            y = x
            if t != 1:
                y = cbr(n, y, h, 1, act=a)
            y = cbr(n, y, h, k, s if j == 0 else 1, g=h, act=a)
            if ses:
                z = n.gap(y); r = max(1, int(ses * i[0])) if ses < 1 else int(h / ses)
                z = n.act(n.conv(z, r, 1, bias=True), a); z = n.act(n.conv(z, h, 1, bias=True), 'sigmoid')
                n.add('mul', 0, 2 * math.prod(y), math.prod(y))
            y = cbr(n, y, c, 1, act=None)
            if (s if j == 0 else 1) == 1 and i[0] == c:
                n.sum(y)
            x = y
    if head:
        x = cbr(n, x, head, 1, act=act)
    x = n.gap(x); n.drop(x); n.fc(x, 1000)
    return n


def rnd(c):
    v = max(8, int(c + 4) // 8 * 8)
    return v + 8 if v < 0.9 * c else v


def mobilenet2(w=1., d=1.):
    cfg = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    out = []
    for i, (t, c, r, s) in enumerate(cfg):
        rr = r if i in (0, len(cfg) - 1) else math.ceil(r * d)
        out.append((t, rnd(c * w), rr, s, 3, 0))
    return mobile(out, rnd(32 * w) if w > 1 and d == 1 else 32, rnd(1280 * w) if w > 1 else 1280)


def mobilenet3():
    h = 'hardswish'
    cfg = [(1, 16, 1, 1, 3, 0, 'relu'), (4, 24, 1, 2, 3, 0, 'relu'), (3, 24, 1, 1, 3, 0, 'relu'), (3, 40, 3, 2, 5, 4, 'relu'),
           (6, 80, 1, 2, 3, 0, h), (2.5, 80, 1, 1, 3, 0, h), (2.3, 80, 2, 1, 3, 0, h), (6, 112, 2, 1, 3, 4, h), (6, 160, 3, 2, 5, 4, h)]
    n = mobile(cfg, 16, 960, h)
    # replace the head by 960→1280→1000
    n.layers.pop(); n.linear((960,), 1280); n.linear((1280,), 1000)
    return n


def mnasnet():
    cfg = [(1, 16, 1, 1, 3, 0), (3, 24, 3, 2, 3, 0), (3, 40, 3, 2, 5, 0), (6, 80, 3, 2, 5, 0), (6, 96, 2, 1, 3, 0), (6, 192, 4, 2, 5, 0), (6, 320, 1, 1, 3, 0)]
    return mobile(cfg, 32, 1280, 'relu')


def efficientnet(w, d, size):
    base = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    return mobile([(t, rnd(c * w), math.ceil(r * d), s, k, 0.25) for t, c, r, s, k in base], rnd(32 * w), rnd(1280 * w), 'silu', size)


def encoder(n, x, heads, d, ff=4, causal=False, act='gelu', pre=True, drop=True, fused_qkv=True, window=None, keepdrop=False):
    if pre:
        n.ln(x)
    if fused_qkv:
        n.linear(x, 3 * d)
    else:
        for _ in range(3):
            n.linear(x, d)
    n.attention(x, heads, causal, window)
    n.linear(x, d)
    if drop:
        n.drop(x)
    n.sum(x)
    n.ln(x)
    h = n.linear(x, int(ff * d)); n.act(h, act); n.linear(h, d)
    if drop:
        n.drop(x)
    n.sum(x)
    if not pre:
        n.ln(x)
    return x


def vit(d, layers, heads, patch, size):
    n = Net('vit'); x = n.conv((3, size, size), d, patch, patch, 0, bias=True)
    s = x[1] * x[2] + 1
    n.add('embed', 0, s * d, s * d, [s * d]); n.add('embed', 0, 0, d, [d])
    x = (s, d)
    for _ in range(layers):
        encoder(n, x, heads, d, drop=False)
    n.ln(x); n.linear((d,), 1000)
    return n


def mixer(d, layers, size=224, patch=16):
    n = Net('mixer'); x = n.conv((3, size, size), d, patch, patch, 0, bias=True); s = x[1] * x[2]
    for _ in range(layers):
        n.ln((s, d)); h = n.linear((d, s), d // 2); n.act(h, 'gelu'); n.linear(h, s); n.sum((s, d))
        n.ln((s, d)); h = n.linear((s, d), 4 * d); n.act(h, 'gelu'); n.linear(h, d); n.sum((s, d))
    n.ln((s, d)); n.linear((d,), 1000)
    return n


def bert(d, layers, heads, seq, mlm=False, vocab=30522):
    n = Net('bert'); x = n.embed((seq,), vocab, d); n.embed((seq,), 512, d); n.embed((seq,), 2, d); n.sum(x); n.sum(x); n.ln(x); n.drop(x)
    for _ in range(layers):
        encoder(n, x, heads, d, pre=False, fused_qkv=False)
    if mlm:
        n.linear(x, d); n.act(x, 'gelu'); n.ln(x); n.linear(x, vocab, tied=True); n.layers[-1]['t'] = [vocab]
    else:
        n.linear((d,), d); n.act((d,), 'tanh')
    return n


def gpt2(d, layers, heads, seq, vocab=50257):
    n = Net('gpt2'); x = n.embed((seq,), vocab, d); n.embed((seq,), 1024, d); n.sum(x); n.drop(x)
    for _ in range(layers):
        encoder(n, x, heads, d, causal=True, act='gelu_new')
    n.ln(x); n.linear(x, vocab, tied=True)
    return n


def convnext(depths, dims, size=224):
    n = Net('convnext'); x = n.conv((3, size, size), dims[0], 4, 4, 0, bias=True); n.lnc(x)
    for st, (dep, d) in enumerate(zip(depths, dims)):
        if st:
            n.lnc(x); x = n.conv(x, d, 2, 2, 0, bias=True)
        for _ in range(dep):
            n.conv(x, d, 7, 1, 3, g=d, bias=True); s = x[1] * x[2]; n.ln((s, d)); h = n.linear((s, d), 4 * d); n.act(h, 'gelu'); n.linear(h, d)
            n.add('mul', 0, s * d, s * d, [d]); n.sum((s, d))
    n.gap(x); n.ln((dims[-1],)); n.linear((dims[-1],), 1000)
    return n


def swin(d, depths, heads, size=224):
    n = Net('swin'); x = n.conv((3, size, size), d, 4, 4, 0, bias=True); s = x[1] * x[2]; n.ln((s, d))
    for st, (dep, hd) in enumerate(zip(depths, heads)):
        if st:
            s //= 4; n.add('concat', 0, s * 4 * d, s * 4 * d, inputs=4); n.ln((s, 4 * d)); n.linear((s, 4 * d), 2 * d, bias=False); d *= 2
        for b in range(dep):
            xx = (s, d); n.add('concat', 0, s * d, s * d, inputs=1)
            encoder(n, xx, hd, d, drop=False, window=49); n.add('concat', 0, s * d, s * d, inputs=1)
            n.add('mul', 0, hd * s * 49, hd * s * 49, [hd * 169])
    n.ln((s, d)); n.gap((d, s, 1)); n.linear((d,), 1000)
    return n


def regnety(w0, depths, widths, gw, size=224):
    n = Net('regnety'); x = cbr(n, (3, size, size), 32, 3, 2)
    for dep, w in zip(depths, widths):
        for b in range(dep):
            s = 1 if b else 2; i = x
            y = cbr(n, x, w, 1); y = cbr(n, y, w, 3, s, g=w // gw)
            z = n.gap(y); r = int(round(i[0] * .25)); z = n.act(n.conv(z, r, 1, bias=True)); n.act(n.conv(z, w, 1, bias=True), 'sigmoid'); n.add('mul', 0, 2 * math.prod(y), math.prod(y))
            y = cbr(n, y, w, 1, act=None)
            if b == 0:
                cbr(n, i, w, 1, s, act=None)
            x = n.act(n.sum(y))
    n.fc(n.gap(x), 1000)
    return n


def xception():
    n = Net('xception'); x = cbr(n, (3, 299, 299), 32, 3, 2, 0); x = cbr(n, x, 64, 3, 1, 0)
    def sep(x, c):
        x = n.conv(x, x[0], 3, 1, 1, g=x[0]); x = n.conv(x, c, 1); n.bn(x); return n.act(x)
    for c in (128, 256, 728):
        y = sep(sep(x, c), c); y = n.pool(y, 3, 2, 1); cbr(n, x, c, 1, 2, act=None); x = n.sum(y)
    for _ in range(8):
        n.sum(sep(sep(sep(x, 728), 728), 728))
    y = n.pool(sep(sep(x, 728), 1024), 3, 2, 1); cbr(n, x, 1024, 1, 2, act=None); x = n.sum(y)
    x = sep(sep(x, 1536), 2048); n.fc(n.gap(x), 1000)
    return n


def overfeat():
    return None


def yolov3(size=416):
    """Darknet-53 and three heads; 61.6 M parameters."""
    n = Net('yolov3'); L = 'leaky'; x = cbr(n, (3, size, size), 32, act=L); keep = []
    for c, r in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        x = cbr(n, x, c, 3, 2, act=L)
        for _ in range(r):
            y = cbr(n, x, c // 2, 1, act=L); n.sum(cbr(n, y, c, 3, act=L))
        keep.append(x)
    up = None
    for c, src in ((512, 4), (256, 3), (128, 2)):
        x = keep[src] if up is None else n.cat([up, keep[src]])
        for j in range(3):
            y = cbr(n, x, c, 1, act=L); x = cbr(n, y, 2 * c, 3, act=L)
        n.conv(x, 75, 1, bias=True)
        if c > 128:
            u = cbr(n, (c, x[1], x[2]), c // 2, 1, act=L); up = (c // 2, x[1] * 2, x[2] * 2)
    return n


R = {18: ([2, 2, 2, 2], False), 26: ([2, 2, 2, 2], True), 34: ([3, 4, 6, 3], False), 50: ([3, 4, 6, 3], True), 101: ([3, 4, 23, 3], True), 152: ([3, 8, 36, 3], True)}


@lru_cache(None)
def build(name, seq=None, image=None):
    m = name.replace('-', '_').lower()
    size = int(image) if image and image == image else 224
    seq = int(seq) if seq and seq == seq else None
    import re
    if m == 'alexnet': return alexnet()
    if m == 'vgg16_cifar': return vgg(V[16], True, 32, True)
    r = re.fullmatch(r'vgg(\d+)(_bn)?', m)
    if r: return vgg(V[int(r[1])], bool(r[2]))
    if m == 'resnet18_cifar': return resnet(*R[18], cifar=True, size=32, classes=10)
    if m in ('resnet32',): return resnet_cifar_small(5)
    r = re.fullmatch(r'resnet(\d+)(_v1|_v2|d)?', m)
    if r: return resnet(*R[int(r[1])], v1=r[2] == '_v1', deep=r[2] == 'd', size=size)
    if m == 'seresnet50': return resnet(*R[50], se=True)
    r = re.fullmatch(r'resnext(\d+)_(\d+)x(\d+)d', m)
    if r: return resnet(*R[int(r[1])], groups=int(r[2]), width=int(r[3]))
    r = re.fullmatch(r'wide_resnet(\d+)_2', m)
    if r: return resnet(*R[int(r[1])], width=128)
    if m == 'densenet121': return densenet([6, 12, 24, 16], 32, 64)
    if m == 'densenet161': return densenet([6, 12, 36, 24], 48, 96)
    if m == 'densenet169': return densenet([6, 12, 32, 32], 32, 64)
    if m == 'densenet201': return densenet([6, 12, 48, 32], 32, 64)
    if m == 'googlenet': return googlenet()
    if m == 'inception_v3': return inception3()
    if m == 'inception_v4': return inception4()
    if m == 'mobilenet_v2': return mobilenet2()
    if m == 'mobilenetv2_110d': return mobilenet2(1.1, 1.2)
    if m == 'mobilenetv2_140': return mobilenet2(1.4)
    if m == 'mobilenetv3_large_100': return mobilenet3()
    if m == 'mnasnet_100': return mnasnet()
    r = re.fullmatch(r'efficientnet_b(\d)', m)
    if r:
        w, d = [(1, 1), (1, 1.1), (1.1, 1.2), (1.2, 1.4), (1.4, 1.8)][int(r[1])]
        return efficientnet(w, d, size)
    r = re.fullmatch(r'(vit|deit)_(\w+?)_patch(\d+)_(\d+)', m)
    if r:
        d, L, h = {'tiny': (192, 12, 3), 'small': (384, 12, 6), 'base': (768, 12, 12), 'large': (1024, 24, 16)}[r[2]]
        return vit(d, L, h, int(r[3]), int(r[4]))
    if m == 'vit_b_16': return vit(768, 12, 12, 16, 224)
    if m == 'mixer_b16_224': return mixer(768, 12)
    if m == 'bert_base': return bert(768, 12, 12, seq or 128)
    if m == 'bert_large': return bert(1024, 24, 16, seq or 128)
    if m == 'bert_base_mlm': return bert(768, 12, 12, seq or 128, True)
    if m == 'bert_large_mlm': return bert(1024, 24, 16, seq or 128, True)
    if m == 'gpt2': return gpt2(768, 12, 12, seq or 1024)
    if m == 'gpt2_large': return gpt2(1280, 36, 20, seq or 1024)
    r = re.fullmatch(r'convnext_(\w+)', m)
    if r:
        return convnext(*{'tiny': ([3, 3, 9, 3], [96, 192, 384, 768]), 'small': ([3, 3, 27, 3], [96, 192, 384, 768]), 'base': ([3, 3, 27, 3], [128, 256, 512, 1024])}[r[1]], size=size)
    if m.startswith('swin_'):
        k = m.split('_')[1]
        return swin(*{'t': (96, [2, 2, 6, 2], [3, 6, 12, 24]), 'tiny': (96, [2, 2, 6, 2], [3, 6, 12, 24]), 'small': (96, [2, 2, 18, 2], [3, 6, 12, 24]), 'base': (128, [2, 2, 18, 2], [4, 8, 16, 32])}[k])
    if m == 'regnety_040': return regnety(0, [2, 6, 12, 2], [128, 192, 512, 1088], 64)
    if m == 'regnety_080': return regnety(0, [2, 4, 10, 1], [168, 448, 896, 2016], 56)
    if m == 'regnety_160': return regnety(0, [2, 4, 11, 1], [224, 448, 1232, 3024], 112)
    if m == 'xception': return xception()
    if m == 'yolov3': return yolov3()
    return None


if __name__ == '__main__':
    import pandas as pd
    s = pd.read_csv(os.path.join(os.environ.get('STEPCAST_DATA', '../../../shared/data'), 'published/single_gpu.csv'))
    for (m, q), g in s.groupby(['model', s.sequence.fillna(0)]):
        im = g.image.dropna().iloc[0] if g.image.notna().any() else None
        n = build(m, q or None, im)
        if n is None:
            print('NONE', m); continue
        p, f = g.parameters.iloc[0], g.gflop.dropna().iloc[0] if g.gflop.notna().any() else float('nan')
        flag = '' if abs(n.params / p - 1) < .01 and (f != f or abs(n.gflop / f - 1) < .02) else '  <<<'
        print(f'{m:32s} {int(q):4d} params {n.params/p:.4f} gflop {n.gflop/f:.4f} tensors {len(n.tensors)}{flag}')
