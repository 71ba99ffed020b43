"""Refits every constant but those of servers (servers.py) and prints their tables of docs/priors.md. Writes priors.toml.

    python3 fit.py            about four minutes on one core
    python3 fit.py --quick    without leaving out devices and networks
"""
import json
import sys
import warnings

from common import *
import allreduce as AR
import memory as M
import onegpu as G

warnings.filterwarnings('ignore', category=FutureWarning)
QUICK = '--quick' in sys.argv
pd.set_option('display.width', 200)


def title(text):
    print(f'\n## {text}\n', flush=True)


def table(frame, digits=3):
    print(frame.round(digits).to_string(), flush=True)


def constants(model, x, se, s, effects):
    group = {k.lstrip('-'): g for g, ks in model.groups.items() for k in ks}
    spread_of = dict(zip(effects, s))
    for (k, (prior, sigma, unit, why)), v, e in zip(model.priors.items(), x, se):
        between = f', between families {spread_of[group[k]]:.2f} ({group[k]})' if k in group else ''
        print(f'{k:14s} {math.exp(v):9.3g} {unit:18s} ±{e:.2f}{between}; prior {prior:g} ±{sigma:g}')
    print('spreads between families, cells, rows (sd of ln):', {k: round(float(v), 3) for k, v in zip(effects, s)})


def sources(model, x, frame, cols):
    """For each constant the families whose rows move by more than 1 % when it moves by 10 %, and the number of rows."""
    out = {}
    c = cols(frame)
    base = np.log(model.predict(x, c))
    for i, k in enumerate(model.names):
        y = x.copy()
        y[i] += .1
        moved = np.abs(np.log(model.predict(y, c)) - base) > .001
        out[k] = (int(moved.sum()), sorted(set(frame.family[moved])))
    return out


def write(f, name, model, x, se, s, effects, src, formula):
    group = {k.lstrip('-'): g for g, ks in model.groups.items() for k in ks}
    spread_of = dict(zip(effects, s))
    f.write(f'\n# {"-" * 100}\n# {name}: {formula}\n# {"-" * 100}\n')
    for (k, (prior, sigma, unit, why)), v, e in zip(model.priors.items(), x, se):
        rows, families = src[k]
        f.write(f'\n[{name}.{k.replace("_", "-")}]\nvalue = {float(f"{math.exp(v):.4g}")!r}\nunit = {json.dumps(unit)}\n')
        f.write(f'fit-error = {e:.3f}         # sd of ln, of the common value\n')
        if k in group:
            f.write(f'spread = {math.hypot(e, spread_of[group[k]]):.3f}            # sd of ln, for a new cluster or device\ngroup = "{group[k]}"\ngroup-spread = {spread_of[group[k]]:.4f}\n')
        else:
            f.write(f'spread = {e:.3f}\n')
        f.write(f'prior = {{ value = {prior!r}, spread = {sigma!r} }}\nprior-source = {json.dumps(why)}\nrows = {rows}\nfamilies = {json.dumps(families)}\n')
    f.write(f'\n[{name}.residual]   # sd of ln\n')
    for k, v in list(zip(effects, s))[len(model.groups):]:
        f.write(f'{k.replace(" ", "-")} = {v:.3f}\n')


AR_EFFECTS = list(AR.GROUPS) + ['cell', 'row']
out = open('priors.toml', 'w')
out.write('# Priors of what machines reach: fitted by fit.py beside this file, explained in docs/priors.md.\n# value: median. spread: standard deviation of its logarithm for a new machine.\n')

# ------------------------------------------------------------------------------------------------ all-reduce
a = AR.rows()
x, se = AR.train(a, True)
s = AR.variances(x, a)
title('All-reduce: constants')
constants(AR.MODEL, x, se, s, AR_EFFECTS)
write(out, 'all-reduce', AR.MODEL, x, se, s, AR_EFFECTS, sources(AR.MODEL, x, a[a.usable], AR.cols), 'step of several workers, docs/priors.md section 1')

title('All-reduce: mean absolute relative error of throughput')
fitted = AR.MODEL.predict(x, AR.cols(a))
pred, sd, df, held = AR.left_out(a, 'src', True)
lr = np.log(a['T'] / pred).to_numpy()
half = student.ppf(.95, df) * sd
cov, by = coverage(lr, half, a.family)
columns = dict(rows=a.groupby('family').size(), trust=a.groupby('family').full.mean(), fitted=AR.by_family(a, fitted)[0], source_out=AR.by_family(a, pred)[0])
others = {}
if not QUICK:
    for by_what in ('device', 'net'):
        others[by_what] = AR.left_out(a, by_what)
        columns[by_what + '_out'] = AR.by_family(a, others[by_what])[0]
columns.update(bias=pd.Series(lr).groupby(a.family.to_numpy()).mean(), sd=pd.Series(lr).groupby(a.family.to_numpy()).std(), coverage=by, half_width=pd.Series(half).groupby(a.family.to_numpy()).mean())
table(pd.DataFrame(columns))
for name, p in [('fitted to all', fitted), ('source left out', pred)] + [(k + ' left out', v) for k, v in others.items()]:
    _, m, one, several = AR.by_family(a, p)
    _, m2, one2, several2 = AR.by_family(a, p, a.full)
    print(f'{name:18s} mean over families {m:.3f} (one machine {one:.3f}, several {several:.3f}); rows of full trust {m2:.3f} ({one2:.3f}, {several2:.3f})')
print(f'90 % intervals, source left out: rows {cov:.3f}, mean over families {by.mean():.3f}, least {by.min():.2f} ({by.idxmin()}); one machine {np.mean(np.abs(lr[a.N == 1]) <= half[a.N == 1]):.3f}, several {np.mean(np.abs(lr[a.N > 1]) <= half[a.N > 1]):.3f}')

# ------------------------------------------------------------------------------------------------ one GPU
g = G.rows()
own = g.own.to_numpy()
gx, gse = G.train(g, True)
gs = G.variances(gx, g)
title('One GPU: constants')
constants(G.MODEL, gx, gse, gs, G.EFFECTS)
write(out, 'one-gpu', G.MODEL, gx, gse, gs, G.EFFECTS, sources(G.MODEL, gx, g, G.cols), 'step of one GPU, docs/priors.md section 2')

title('One GPU: factor exp(mean |ln(measured / predicted)|)')
factor = lambda v: math.exp(np.abs(v).mean())
gfit = np.log(g['T'] / G.MODEL.predict(gx, G.cols(g))).to_numpy()
results = {}
for what in ('src',) + (() if QUICK else ('device', 'model')):
    p, psd, pdf = G.left_out(g, what, True)
    results[what] = (np.log(g['T'] / p).to_numpy(), student.ppf(.95, pdf) * psd)
for key in ('family', 'device', 'model'):
    k = {'family': 'src'}.get(key, key)
    if k in results:
        l, h = results[k]
        o = pd.DataFrame(dict(key=g[key].to_numpy(), fitted=gfit, out=l, hit=np.abs(l) <= h, half=h))
        table(o.groupby('key').agg(rows=('out', 'size'), fitted=('fitted', factor), left_out=('out', factor), bias=('out', 'mean'), coverage=('hit', 'mean'), half_width=('half', 'mean')))
for what, (l, h) in results.items():
    f, within, q = G.score(l[~own])
    hit = np.abs(l) <= h
    fam = pd.Series(hit[~own]).groupby(g.family[~own].to_numpy()).mean()
    print(f'{what} left out: factor {f:.3f}, within 1.65 {within:.3f}, 90 % quantile {q:.2f}; coverage {hit[~own].mean():.3f}, families {fam.mean():.3f}, least {fam.min():.2f} ({fam.idxmin()}); half width {h[~own].mean():.2f}; H200 steps of the project: factor {G.score(l[own])[0]:.3f}')
print(f'fitted to all: factor {G.score(gfit[~own])[0]:.3f}')
zoo = (g.zoo.isin(['yes', 'custom']) & ~g.own).to_numpy()
print(f'zoo and custom networks only, source left out: factor {G.score(results["src"][0][zoo])[0]:.3f}, within 1.65 {G.score(results["src"][0][zoo])[1]:.3f}; fp32 {G.score(results["src"][0][~own & (g.precision == "fp32").to_numpy()])[0]:.3f}, tf32 {G.score(results["src"][0][~own & (g.precision == "tf32").to_numpy()])[0]:.3f}, 16 bits {G.score(results["src"][0][~own & (g.width == 2).to_numpy()])[0]:.3f}')

# ------------------------------------------------------------------------------------------------ what is known
title('All-reduce by what is known (source left out; error of throughput, half width of ln at 90 %, coverage)')
names = a[['net', 'sequence', 'device', 'precision', 'batch_per_gpu', 'data', 'notes']].rename(columns=dict(net='model', batch_per_gpu='batch'))
names['optimiser'], names['compiled'], names['image'] = None, None, None
names.loc[a.src == 'lambda_tf', 'compiled'] = 'XLA'   # as its rows in single_gpu.csv say
imaged = ~((a.src == 'azure') & (a.net == 'mobilenet-v2') | (a.net == 'yolov3')).to_numpy()   # image size not stated
described = G.describe(names)
T1, s1 = np.zeros(len(a)), np.zeros(len(a))
alias = {'dlperf': 'dlperf report'}
for src in a.src.unique():
    te = (a.src == src).to_numpy()
    out_g = g[g.family != alias.get(src, src)]
    x1 = G.train(out_g)
    T, J, K = G.parts(x1, described[te])
    T1[te], s1[te] = T, spread(G.variances(x1, out_g), J, K)
blind = a.copy()
blind['T1'] = T1
rated = np.zeros(len(a))
kinds = {'names alone': (np.zeros(len(a)), np.zeros(len(a))), 'one-GPU throughput': (lr, half), 'and the rate of the network': (np.zeros(len(a)), np.zeros(len(a)))}
for src in a.src.unique():
    te = (a.src == src).to_numpy()
    xs, ss = held[src]
    T, J, K = AR.parts(xs, blind[te])
    up = blind[te].copy()
    up['T1'] *= 1.02
    dT1 = np.log(AR.MODEL.predict(xs, AR.cols(up)) / T) / math.log(1.02)
    kinds['names alone'][0][te] = np.log(a['T'][te] / T)
    kinds['names alone'][1][te] = student.ppf(.95, df[te]) * np.hypot(spread(ss, J, K), dT1 * s1[te])
    # the rate of the network as if measured: the factor on the rates that fits the family best, known to 5 %
    known = ss.copy()
    known[:2] = .05
    index = [AR.MODEL.names.index(k) for k in AR.GROUPS['rate of the network'] + AR.GROUPS['rate inside the machine']]
    for fam in a.family[te].unique():
        m = te & (a.family == fam).to_numpy()
        c = AR.cols(a[m])
        best = None
        for shift in np.linspace(-1.2, 1.2, 25):
            y = xs.copy()
            y[index] += shift
            e = np.abs(np.log(a['T'][m] / AR.MODEL.predict(y, c))).mean()
            best = min(best or (e, y), (e, y), key=lambda v: v[0])
        T, J, K = AR.parts(best[1], a[m])
        kinds['and the rate of the network'][0][m] = np.log(a['T'][m] / T)
        kinds['and the rate of the network'][1][m] = student.ppf(.95, df[m]) * spread(known, J, K)
for label, (l, h) in kinds.items():
    for where, m in (('one machine', (a.N == 1).to_numpy()), ('several', (a.N > 1).to_numpy())):
        m = m & imaged if label == 'names alone' else m
        fam = a.family[m].to_numpy()
        e = pd.Series(np.abs(np.exp(l[m]) - 1)).groupby(fam).mean().mean()
        f = pd.Series(np.abs(l[m])).groupby(fam).mean().mean()
        w = pd.Series(h[m]).groupby(fam).mean().mean()
        c = pd.Series(np.abs(l[m]) <= h[m]).groupby(fam).mean()
        print(f'{label:28s} {where:12s} error {e:.3f} (factor {math.exp(f):.3f}), half width {w:.2f}, coverage rows {np.mean(np.abs(l[m]) <= h[m]):.3f}, families {c.mean():.3f}, least {c.min():.2f}')

title('One or three runs of the same cluster given (Bayesian update of the effects; other rows of the family judged)')
rng = np.random.default_rng(1)
for runs in (0, 1, 3):
    err, width, hits = {}, {}, {}
    for src in a.src.unique():
        te = (a.src == src).to_numpy()
        xs, ss = held[src]
        for fam in a.family[te].unique():
            rows = a[te & (a.family == fam).to_numpy()]
            if len(rows) < 10:
                continue
            T, J, K = AR.parts(xs, rows)
            r = np.log(rows['T'] / T).to_numpy()
            cell = rows.cell.to_numpy()
            for _ in range(8):
                i = rng.choice(len(rows), max(runs, 1), replace=False)
                j = np.setdiff1d(rng.permutation(len(rows))[:150], i)
                k = J.shape[1]
                cross = lambda p, q: (J[p] * ss[:k] ** 2) @ J[q].T + ss[k] ** 2 * np.outer(K[p], K[q]) * (cell[p][:, None] == cell[q][None, :])
                noise = ss[k + 1] ** 2 + .02 ** 2
                if runs:
                    A = np.linalg.solve(cross(i, i) + noise * np.eye(len(i)), cross(i, j)).T
                    mean, var = A @ r[i], np.diag(cross(j, j)) - np.einsum('ab,ab->a', A, cross(j, i)) + noise
                else:
                    mean, var = np.zeros(len(j)), np.diag(cross(j, j)) + noise
                rest = r[j] - mean
                h = student.ppf(.95, 12) * np.sqrt(var)
                err.setdefault(fam, []).append(np.abs(np.exp(rest) - 1).mean())
                width.setdefault(fam, []).append(h.mean())
                hits.setdefault(fam, []).append((np.abs(rest) <= h).mean())
    m = lambda d, several: np.mean([np.mean(v) for k, v in d.items() if several is None or ('one machine' not in k) == several])
    print(f'{runs} runs: error {m(err, None):.3f} (one machine {m(err, False):.3f}, several {m(err, True):.3f}), half width {m(width, None):.2f}, coverage {m(hits, None):.3f}')

# ------------------------------------------------------------------------------------------------ memory
title('Peak memory of the 37 steps, MiB')
m = M.rows()
e = np.abs(m.predicted / m.measured - 1)
view = m.copy()
for k in ('measured', 'predicted', 'static', 'kept', 'workspace'):
    view[k] = (view[k] / 2 ** 20).round().astype(int)
view['ratio'] = (m.predicted / m.measured).round(2)
print(view.to_string())
print(f'mean error {e.mean():.3f}, worst {e.max():.2f}; ' + ', '.join(f'{k} {v:.3f}' for k, v in e.groupby(m.precision).mean().items()))
lo = []
for net in m.model.unique():
    lo.append(e[m.model == net].mean())
print(f'by network: mean {np.mean(lo):.3f}, worst {np.max(lo):.3f} ({m.model.unique()[int(np.argmax(lo))]})')
out.write(f'\n# {"-" * 100}\n# memory: counted, docs/priors.md section 3; nothing fitted\n# {"-" * 100}\n\n[memory]\nwinograd = {M.WINOGRAD}   # 36 numbers for 16: F(4x4, 3x3)\nfft = {M.FFT}         # 32 x 17 complex numbers for 9: tiled FFT\nmean-error = {e.mean():.3f}\n')
usable, data = a[a.usable], g[~own]
out.write(f"""
# {"-" * 100}
# Figures that are chosen or counted, not fitted
# {"-" * 100}

[all-reduce.fixed]
wire = {AR.WIRE}            # of an Ethernet rate
sharpness = {AR.NORM}       # exponent of the smaller of two rates
softness = {AR.SOFT}        # of the corner between hidden and exposed, share of what can hide
backward = 0.6667      # share of a step

[one-gpu.fixed]
sharpness = {G.HOST_NORM}       # exponent of the larger of host and device
compiled-host = 0.5   # host time of a compiled step

[one-gpu.full-power]  # W for each TFLOP/s of FP32, full-power board of the generation
""" + ''.join(f'{k} = {v}\n' for k, v in G.devices.FULL_POWER.items()) + f"""
# What a doubling beyond the range below adds to the spread (extrapolate.py: fitted to the small ones, judged on the
# large ones): sd of ln, in quadrature.
[extrapolation]
all-reduce = {{ per-doubling = 0.03, gpus = [{usable.g.min()}, {usable.g.max()}], gradient-mb = [{usable.B.min() * 1e3:.0f}, {usable.B.max() * 1e3:.0f}], gbps = [10, 100] }}
one-gpu = {{ per-doubling = 0.10, batch = [{data.batch.min():.0f}, {data.batch.max():.0f}], fp32-tflops = [{data.fp32.min() / 1e12:.1f}, {data.fp32.max() / 1e12:.1f}] }}
""")
out.close()
