"""Parameter servers: step of several workers (machines) from the step of one, names, and the servers' software.

    python3 servers.py             fits the constants, leaves each source out in turn, estimates spreads
    python3 servers.py --vectors   writes vectors_servers.csv, with the constants of catalog/priors.toml

Needs nothing but Python: rows are those of validation/published-scaling and Tables 5-7 of validation/zeng2023.
docs/priors.md, section 4, explains the formula.
"""
import csv
import gzip
import math
import os
import random
import statistics
import sys
import tomllib

import nets

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '../..')
FRAMING = 1448 / 1538                        # share of Ethernet that TCP leaves for payload
NETWORKS = {'1gbe': (1, FRAMING), '10gbe': (10, FRAMING), '25gbe': (25, FRAMING), '100gbe': (100, FRAMING),
            'aries': (81.6, 1.), 'infiniband-edr': (100, .97)}
# cores, clock in GHz, memory rate in GB/s
USUAL_HOST = (12, 2.6, 68.3)
HOSTS = {'xeon-core': (1, 2.5, 17.)}
CLOCK, MEMORY, PASSES, UPDATE, HIDEABLE, LEAST = 2.5, .5, 9., 5., 2 / 3, .3

# median, sigma of ln before any run
PRIORS = {
    'grpc-1.0': (.65, .35), 'grpc-1.5': (.8, .35), 'grpc-2': (.8, .35), 'grpc-mpi': (.8, .5), 'ps-lite': (.8, .5), 'tensor': (1e-4, .4),
    'bps-wire': (.6, .25), 'bps-flow': (3., .4), 'shows': (.1, .5), 'hides': (.8, .2), 'loss': (.02, .5), 'loss-cpu': (.05, .5),
}
GROUPS = {'server software': ['grpc-1.0', 'grpc-1.5', 'grpc-2', 'grpc-mpi', 'ps-lite', '-tensor'],
          'rate of the network': ['bps-wire', 'bps-flow'], 'overlap': ['shows', '-hides'], 'losses': ['loss', 'loss-cpu']}


def rate(p, software, host, connections):
    """Bytes received and sent per second by a server: its threads, or its memory."""
    cores, clock, memory = host
    grpc = (p['grpc-1.0'] * p['grpc-1.5'] * p['grpc-2']) ** (1 / 3)
    thread = grpc if software == 'grpc' else p[software]
    return 1e9 * min(thread * clock / CLOCK * max(1, min(connections, cores)), memory * MEMORY / PASSES)


def exchange(p, r, workers, servers):
    """Times of the fullest server for one worker, of a worker that is alone, of the update, and of a worker's port."""
    each = 1 + r['copies']
    turn = alone = update = 0.
    for size, tensors in fullest(r['layers'], servers, r['placement']):
        wire = size * (r['copies'] if r['async'] else each) / r['wire']
        dispatch = p['tensor'] * tensors * each
        software = max(size * each / rate(p, r['software'], r['host'], workers), dispatch)
        turn = max(turn, max(wire, software) if r['async'] else math.hypot(wire, software))
        alone = max(alone, size * each / rate(p, r['software'], r['host'], 1), dispatch)
        update = max(update, size * UPDATE / (1e9 * r['host'][2] * MEMORY))
    return turn, alone, update, r['bytes'] * each / r['wire']


def byteps(p, r):
    port, flows = 2 * p['bps-wire'] * r['gbps'] / 8e-9, p['bps-flow'] * 1e9 * math.sqrt(max(2, r['N']) - 1)
    return 2 * r['bytes'] / (port * (1 + (port / flows) ** 4) ** -.25)


def asynchronous(p, r, computing, workers, servers):
    turn, alone, _, port = exchange(p, r, workers, servers)
    turn = max(turn, port / workers)
    alone = max(alone, port, turn)
    hidden = min(p['hides'] * HIDEABLE * computing, alone * (1 - p['shows'])) if r['overlap'] else 0.
    return max(computing + alone - hidden, workers * turn)


def step(p, r):
    N, alone = r['N'], r['T1']
    if r['async']:
        if r['with_server']:                 # the worker alone had a server
            alone = max(alone - (asynchronous(p, r, alone, 1, 1) - alone), LEAST * alone)
        return asynchronous(p, r, alone, N, r['S'])
    loss = 1 + (p['loss-cpu'] if r['cpu'] else p['loss']) * math.log2(N)
    if r['software'] == 'byteps':
        communication = byteps(p, r)
    else:
        turn, _, update, port = exchange(p, r, N, r['S'])
        communication = max(N * turn, port) + update
    hidden = p['hides'] * HIDEABLE if r['overlap'] else 0.
    end = 0.
    for t in sorted(r['steps'], key=lambda t: t * (loss - hidden)):
        end = max(end, t * (loss - hidden)) + communication / N
    return max(end, max(r['steps']) * loss + p['shows'] * communication)


def fullest(layers, servers, placement, kept={}):
    key = (tuple(layers), servers, placement)
    if key not in kept:
        if placement == 'even':
            kept[key] = [(sum(b for b, _ in layers) / servers, sum(t for _, t in layers) / servers)]
        else:
            held = [[0., 0] for _ in range(min(servers, len(layers)))]
            for size, tensors in layers:
                least = min(held, key=lambda one: one[0])
                least[0] += size
                least[1] += tensors
            kept[key] = held
    return kept[key]


def network_layers(name):
    return [(4 * layer['w'], len(layer['t'])) for layer in nets.build(name).layers if layer['w'] > 0]


def table(path):
    text = (gzip.open if path.endswith('gz') else open)(os.path.join(ROOT, path), 'rt')
    return list(csv.DictReader(line for line in text if not line.startswith('#')))


def row(layers, network, gbps, **more):
    nominal, share = NETWORKS[network]
    gbps = gbps or nominal
    return dict(layers=layers, bytes=sum(b for b, _ in layers), gbps=gbps, wire=share * gbps / 8e-9, fitted=1., **more)


def rows():
    out = []
    for r in table('validation/published-scaling/runs.csv.gz'):
        if r['architecture'] != 'parameter-server':
            continue
        count, alone = int(r['tensors']), float(r['single_samples']) / float(r['single_throughput'])
        layers = network_layers(r['zoo']) if r['zoo'] else [(4 * float(r['parameters']) / count, 1)] * count
        N, copies = int(r['workers']), int(r['copies'] or 1)
        out.append(row(
            layers, r['network'], float(r['gbps'] or 0), id=r['id'], family=r['family'], source=r['family'].split(' ')[0], N=N,
            S=int(r['servers']), placement=r['placement'], software=r['software'], host=HOSTS.get(r['device'], USUAL_HOST), copies=copies,
            overlap=r['overlap'] != 'false' and copies == 1, cpu=r['device'].startswith('xeon'), T1=alone, steps=[alone] * N,
            with_server=r['single_with_server'] == 'true', T=int(r['batch']) * N * int(r['gpus_per_worker'] or 1) / float(r['throughput']),
            **{'async': r['pace'] == 'async'}))
        # networks that are not stated: fitted with little weight; pods of 10 cores are only judged
        if r['family'].startswith('tf_logs') and r['software'] != 'grpc-mpi':
            out[-1]['fitted'] = .25
        elif r['family'].startswith('paddle'):
            out[-1]['fitted'] = .25 if int(r['id'][-4:]) <= 14 else 0.
    # measured steps of the RTX 4000; the GTX 1060 by its peak rate
    alone = {(r['model'], r['batch']): float(r['mt']) for r in table('validation/zeng2023/workbook.csv') if r['config'] == 'gpu'}
    for r in table('validation/zeng2023/tables2-7.csv'):
        t = alone.get((r['model'], r['batch']))
        if r['table'] not in '567' or t is None:
            continue
        steps = [t, t] + ([t * 7.1 / 4.4] if r['config'].startswith('3') else [])
        out.append(row(network_layers(r['model']), '10gbe' if r['table'] == '7' else '1gbe', 0, id=f'zeng-{r["table"]}-{r["model"]}-{r["batch"]}',
                       family='zeng2023', source='zeng2023', N=len(steps), S=1, placement='greedy', software='grpc-2', host=USUAL_HOST, copies=1,
                       overlap=True, cpu=False, T1=max(steps), steps=steps, with_server=False, T=float(r['mt']), **{'async': False}))
    return out


def solve(matrix, right):
    """Gaussian elimination."""
    n, m = len(right), [line[:] + [v] for line, v in zip(matrix, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(m[k][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for k in range(i + 1, n):
            f = m[k][i] / m[i][i]
            m[k] = [a - f * b for a, b in zip(m[k], m[i])]
    x = [0.] * n
    for i in reversed(range(n)):
        x[i] = (m[i][n] - sum(m[i][j] * x[j] for j in range(i + 1, n))) / m[i][i]
    return x


def fit(rows, start=None, sd=.12):
    """Levenberg-Marquardt on logarithms, soft-L1 residuals, normal priors; a family counts as 15 rows at most."""
    names = list(PRIORS)
    count = {}
    for r in rows:
        count[r['family']] = count.get(r['family'], 0) + 1
    rows = [r for r in rows if r['fitted'] > 0]
    weight = [r['fitted'] * min(1, 15 / count[r['family']]) for r in rows]
    before = [(math.log(PRIORS[k][0]), PRIORS[k][1]) for k in names]
    values = lambda x: {k: math.exp(v) for k, v in zip(names, x)}
    residuals = lambda x: [math.log(r['T'] / step(values(x), r)) / sd for r in rows]
    objective = lambda e, x: sum(w * 2 * (math.hypot(v, 1) - 1) for w, v in zip(weight, e)) + sum(((a - m) / s) ** 2 for a, (m, s) in zip(x, before))
    x = [math.log(start[k]) for k in names] if start else [m for m, _ in before]
    e = residuals(x)
    best, damping = objective(e, x), 1e-3
    for _ in range(10):
        slopes = []
        for i in range(len(x)):
            ends = [residuals(x[:i] + [x[i] + d] + x[i + 1:]) for d in (.02, -.02)]
            slopes.append([(a - b) / .04 for a, b in zip(*ends)])
        w = [a / math.hypot(v, 1) for a, v in zip(weight, e)]
        normal = [[sum(c * a * b for c, a, b in zip(w, one, other)) for other in slopes] for one in slopes]
        slope = [sum(c * a * v for c, a, v in zip(w, one, e)) + (a0 - m) / s ** 2 for one, a0, (m, s) in zip(slopes, x, before)]
        for i, (_, s) in enumerate(before):
            normal[i][i] += s ** -2
        for _ in range(8):
            damped = [[v * (1 + damping * (i == j)) for j, v in enumerate(line)] for i, line in enumerate(normal)]
            y = [a - b for a, b in zip(x, solve(damped, slope))]
            after = residuals(y)
            if objective(after, y) < best - 1e-6:
                x, e, best, damping = y, after, objective(after, y), damping * .3
                break
            damping *= 10
        else:
            break
    errors = [math.sqrt(solve(normal, [float(i == j) for j in range(len(x))])[i]) for i in range(len(x))]
    return values(x), dict(zip(names, errors))


def slopes(p, r):
    def moved(group, shift):
        q = dict(p)
        for k in group:
            q[k.lstrip('-')] *= math.exp(-shift if k[0] == '-' else shift)
        return math.log(step(q, r))
    return [(moved(g, .02) - moved(g, -.02)) / .04 for g in GROUPS.values()]


def spreads(judged):
    """Maximum likelihood of the spreads of groups, cells and rows, with log-normal priors, by a random walk."""
    before = [(.5, .2), (.2, .3), (.35, .2), (.6, .3), (.15, .3), (.06, .3)]
    count = {}
    for r, *_ in judged:
        count[r['family']] = count.get(r['family'], 0) + 1

    def cost(x):
        total = sum(.5 * ((v - math.log(m)) / s) ** 2 for v, (m, s) in zip(x, before))
        w = [math.exp(v) for v in x]
        for r, e, J, cell in judged:
            variance = sum((a * b) ** 2 for a, b in zip(w, J)) + (w[4] * cell) ** 2 + w[5] ** 2 + .02 ** 2
            total += min(1, 8 / count[r['family']]) * .5 * (math.log(variance) + max(-.6, min(.6, e)) ** 2 / variance)
        return total
    random.seed(1)
    x = [math.log(m) for m, _ in before]
    best = cost(x)
    for _ in range(4000):
        y = [v + random.gauss(0, .1) for v in x]
        if cost(y) < best:
            x, best = y, cost(y)
    return [math.exp(v) for v in x]


def shipped():
    servers = tomllib.load(open(os.path.join(ROOT, 'catalog/priors.toml'), 'rb'))['servers']
    return {k: servers[k]['value'] for k in PRIORS}


def main():
    all_rows = rows()
    p, errors = fit(all_rows)
    print('constant       fitted      ±  shipped')
    for k, v in shipped().items():
        print(f'{k:10s} {p[k]:10.4g} {errors[k]:6.2f} {v:8.4g}')
    without = {s: fit([r for r in all_rows if r['source'] != s], p)[0] for s in sorted({r['source'] for r in all_rows})}
    judged = []
    for r in all_rows:
        q = without[r['source']]
        judged.append((r, math.log(r['T'] / step(q, r)), slopes(q, r), math.sqrt(min(1, max(.005, 1 - r['T1'] / step(q, r))))))
    print('spreads:', {k: round(v, 3) for k, v in zip([*GROUPS, 'cell', 'row'], spreads([j for j in judged if j[0]['fitted'] > 0]))})
    print('family, rows, error fitted, source left out, bias left out (%)')
    for family in dict.fromkeys(r['family'] for r in all_rows):
        own = [j for j in judged if j[0]['family'] == family]
        fitted = statistics.mean(abs(step(p, r) / r['T'] - 1) for r, *_ in own)
        left = statistics.mean(abs(math.exp(-e) - 1) for _, e, *_ in own)
        print(f'{family:30s} {len(own):3d} {100 * fitted:5.1f} {100 * left:5.1f} {-100 * statistics.mean(e for _, e, *_ in own):+5.1f}')


def vectors():
    p = shipped()
    with open(os.path.join(HERE, 'vectors_servers.csv'), 'w') as f:
        f.write('id,N,S,T1,with_server,T,predicted_s\n')
        for r in rows():
            if r['source'] != 'zeng2023':
                f.write(f'{r["id"]},{r["N"]},{r["S"]},{r["T1"]:.6g},{r["with_server"]},{r["T"]:.6g},{step(p, r):.6g}\n')


vectors() if '--vectors' in sys.argv else main()
