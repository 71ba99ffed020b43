"""Parameter servers: step of several workers (machines) from the step of one, names, and the servers' software."""
from common import *

WIRE = .9
PRIORS = {
    'grpc': (.3, .25, 'GB/s', 'in and out together through one gRPC server process: serialising, copies, one thread a connection'),
    'grpc_mpi': (4., .6, 'GB/s', 'the same with MPI as transport'),
    'tensor': (1.7e-4, .4, 's', 'for each tensor of an update at a server, push and pull: as the host time of a gradient tensor on one GPU, 0.12-0.25 ms'),
    'duplex': (1.4, .2, 'factor', 'asynchronous workers keep both directions busy, synchronous ones push together, then pull together; between 1 and 2'),
    'bps_wire': (.6, .25, 'of both directions', 'BytePS over TCP: share of the port'),
    'bps_flow': (3., .4, 'GB/s', 'BytePS over TCP, both directions, one remote server; grows with the root of their number'),
    'shows': (.1, .5, 'share', 'communication that shows though there is time'),
    'hides': (.8, .2, 'share', 'of the backward pass that can hide communication'),
    'loss': (.02, .5, 'per doubling', 'stragglers, workers with GPUs'),
    'loss_cpu': (.05, .5, 'per doubling', 'stragglers, workers on shared CPU cores'),
}
GROUPS = {'server software': ['grpc', 'grpc_mpi', 'tensor', 'duplex'], 'rate of the network': ['bps_wire', 'bps_flow'], 'overlap': ['shows', '-hides'], 'losses': ['loss', 'loss_cpu']}


def closed_queue(N, think, service):
    """Throughput of N workers that think and then queue at one server: exact mean value analysis."""
    queue = 0.
    for n in range(1, N + 1):
        wait = service * (1 + queue)
        X = n / (think + wait)
        queue = X * wait
    return X


def one(p, r):
    N, S, B, T1 = int(r.N), float(r.S), r.B, r.T1
    loss = (p['loss_cpu'] if r.cpu else p['loss']) * math.log2(N)
    hide = p['hides'] * 2 / 3 * T1
    if r.byteps:
        port, flows = p['bps_wire'] * 2 * r.gbps / 8, p['bps_flow'] * math.sqrt(max(1, N - 1))
        comm = 2 * B / (port ** -4 + flows ** -4) ** -.25
        return T1 * (1 + loss) + (comm if r.no_overlap else max(p['shows'] * comm, comm - hide))
    # every GPU of a machine pulls its own copy in TensorFlow's parameter_server mode; the machine pushes once
    moved = B * (1 + (r.gpus_per_node if r.copies else 1))
    rate = p['grpc_mpi'] if r.mpi else p['grpc']
    service = moved / S / rate + r.tensors / S * p['tensor']
    if r.asynchronous:
        service /= p['duplex']
        alone = service * S                      # the baseline of one worker had one server
        think = max(T1 - alone, .3 * T1) if r.one_gpu else T1
        return N / closed_queue(N, think, service)
    wire = 0. if r.mpi else moved * max(1., N / S) / (WIRE * r.gbps / 8)
    comm = max(N * service, wire)
    exposed = comm if r.copies else max(p['shows'] * comm, comm - hide)
    return T1 * (1 + loss) + max(p['shows'] * comm, exposed)


def formula(p, c):
    return np.array([one(p, r) for r in c])


MODEL = Model(PRIORS, formula, GROUPS)


def rows():
    d = pd.read_csv(f'{DATA}/published/scaling.csv', dtype={'gpus_of_nodes': str})
    p = d[d.strategy.str.startswith('ps-')].copy()
    p['one_gpu'] = p.single_of == 'one GPU'
    k = np.where(p.single_of.str.startswith('one machine'), p.gpus_per_node, 1)
    p['N'], p['S'] = (p.gpus / k).astype(int), p.servers
    p['T1'] = p.batch_per_gpu * k / p.single_throughput
    p['T'] = p.batch_per_gpu * p.gpus / p.throughput
    p['B'] = 4 * p.parameters / 1e9
    p['tensors'] = [len(nets.build(m).tensors) for m in p.model]
    p['gbps'] = p.inter_gbps
    p.loc[(p.family == 'hkbu 100 Gb PS TCP') & (p.trust == 'partial'), 'gbps'] = 10.   # the table's README: equal to its 10 GbE rows
    p['byteps'], p['mpi'], p['no_overlap'] = p.strategy.str.contains('BytePS'), p.strategy.str.contains('mpi'), p.strategy.str.contains('bsp')
    p['copies'], p['asynchronous'] = p.strategy.str.contains('parameter_server'), p.strategy.str.startswith('ps-async')
    p['cpu'] = p.device.str.contains('xeon')
    p['pod'] = p.label.fillna('').str.contains('10 cores a pod')   # cores a trainer unclear: judged, not fitted
    p['src'] = p.family.str.split(' ').str[0]
    p['stated'] = ~p.family.str.contains('tf_logs|paddle')         # network stated, or known not to matter (cakelab)
    p['cell'] = p.family + p.framework + p.device + p.model + p.precision
    return p


def cols(p):
    return list(p.itertuples())


def train(p, curvature=False):
    u = p[~p.pod]
    w = capped(u.family, 15) * np.where(u.stated, 1, .5)
    return MODEL.fit(cols(u), u['T'].to_numpy(), w, .12, curvature)


def parts(x, p):
    c = cols(p)
    T = MODEL.predict(x, c)
    return T, MODEL.sensitivities(x, c), np.sqrt(np.clip(1 - p.T1.to_numpy() / T, .005, 1))


def variances(x, p):
    u = p[~p.pod]
    T, J, K = parts(x, u)
    return components(np.log(u['T'].to_numpy() / T), J, K, u.family.to_numpy(), u.cell.to_numpy(),
                      start=np.array([.4, .2, .3, .6, .3, .08]), width=.3)


def left_out(p, by='src'):
    out, sd, df = np.zeros(len(p)), np.zeros(len(p)), np.zeros(len(p))
    for k in p[by].unique():
        te = (p[by] == k).to_numpy()
        x = train(p[~te])
        T, J, K = parts(x, p[te])
        out[te], sd[te], df[te] = T, spread(variances(x, p[~te]), J, K), p[~te].family.nunique() - 1
    return out, sd, df
