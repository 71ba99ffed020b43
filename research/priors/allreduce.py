"""All-reduce: step of several workers from the one-GPU step and names."""
from common import *

NOMINAL = {'pcie3-x16': 15.75, 'pcie4-x16': 31.5, 'pcie5-x16': 63., 'nvlink1': 80., 'nvlink2': 150., 'nvlink3': 300., 'nvlink4': 450., 'nvlink5': 900.}
NO_P2P = ('rtx-20', 'rtx-30', 'rtx-40', 'rtx-50')   # GeForce since Turing: no peer-to-peer over PCIe
WIRE = 0.92                                        # what framing leaves of Ethernet, catalog 0.9415, less acknowledgements
NORM = 4.                                          # sharpness of the smaller of two rates
SOFT = 0.4                                         # softness of the overlap, share of what can hide

PRIORS = {
    'tcp_flow': (2.5, .35, 'GB/s', "own machines, TCP, what one host reaches through NCCL's sockets: 2.4 (60 % of 32 Gbit/s, github NVIDIA/nccl issue 209), 2.7 (mean at 100 Gbit/s, issue 450)"),
    'tcp_vm': (.8, .5, 'GB/s', 'rented machines, TCP: one flow has 5 Gbit/s, in a placement group 10 (Amazon EC2 user guide, instance network bandwidth)'),
    'rdma': (.6, .35, 'of nominal', 'nccl-tests on RDMA fabrics, 0.5-0.9 (stas00/ml-engineering), less for one port shared by eight GPUs'),
    'p2p': (.55, .3, 'of nominal', 'PCIe with peer-to-peer, ring through switches and root complex'),
    'bounce': (5.5, .15, 'GB/s', 'PCIe without peer-to-peer: a copy to and a copy from host memory, each at about 12 GB/s of PCIe 3 x16'),
    'shared': (25., .2, 'GB/s', 'host memory path that all GPUs of a machine share when they bounce: about 100 GB/s of a server, each byte written and read twice'),
    'nv': (.4, .4, 'of nominal', 'NVLink; microbenchmarks of large messages reach 0.78 (A100), buckets of 25 MB a third to a half of it'),
    'mpi': (1., .5, 'GB/s', 'host-summed MPI: copies to the host, sums on it'),
    'shows_in': (.5, .4, 'share', 'communication inside a machine that shows though there is time: kernels of collectives and of layers compete'),
    'shows_x': (.2, .5, 'share', 'the same between machines'),
    'hides': (.75, .2, 'share', 'of the backward pass (two thirds of the step) that can hide communication'),
    'loss_in': (.02, .5, 'per doubling', 'loss of computing speed for each doubling of GPUs inside a machine'),
    'loss_x': (.02, .5, 'per doubling', 'the same for machines: stragglers'),
    'loss_real': (.01, .7, 'per doubling', 'additional loss inside a machine with real data'),
    'hop_in': (3e-5, .7, 's', 'start-up of a collective, each doubling of GPUs inside, twice'),
    'hop_x': (5e-5, .7, 's', 'the same for machines; TCP round trips'),
    'tensor': (2e-5, .8, 's', 'host work for each gradient tensor once there are several workers'),
    'cycle': (.004, .6, 's', 'Horovod: waiting for its cycle (5 ms by default) and agreeing, each doubling of GPUs'),
}
GROUPS = {
    'rate of the network': ['tcp_flow', 'tcp_vm', 'rdma', 'mpi'],
    'rate inside the machine': ['p2p', 'bounce', 'shared', 'nv'],
    'what shows': ['shows_in', 'shows_x'],
    'what hides': ['hides'],
    'losses': ['loss_in', 'loss_x', 'loss_real'],
    'start-ups': ['hop_in', 'hop_x', 'tensor', 'cycle'],
}


def formula(p, c):
    both = lambda a, b: (a ** -NORM + b ** -NORM) ** (-1 / NORM)
    bounce = both(p['bounce'], p['shared'] / np.maximum(c.m, 2))
    inside = np.where(c.nvlink, p['nv'] * c.inside, np.where(c.no_p2p, bounce, p['p2p'] * c.inside))
    tcp = both(WIRE * c.gbps / 8, np.where(c.rented, p['tcp_vm'], p['tcp_flow']))
    outside = np.where(c.rdma, p['rdma'] * c.gbps / 8, tcp)
    rate = np.where(c.N > 1, both(outside, inside), inside)
    rate = np.where(c.host_mpi, p['mpi'], rate)
    start = 2 * p['hop_in'] * np.log2(c.m) + 2 * p['hop_x'] * np.log2(c.N)
    comm = 2 * (c.g - 1) / c.g * c.B / rate + c.messages * start
    shows = np.where((c.N > 1) | c.host_mpi, p['shows_x'], p['shows_in'])
    hide = p['hides'] * 2 / 3 * c.T1
    least, rest, soft = shows * comm, comm - hide, SOFT * hide
    exposed = least + soft * np.logaddexp(0, (rest - least) / soft)
    exposed = np.where(c.no_overlap, comm, exposed)
    loss = p['loss_in'] * np.log2(c.m) + p['loss_x'] * np.log2(c.N) + np.where(c.real, p['loss_real'] * np.log2(c.m), 0)
    return c.T1 * (1 + loss) + exposed + p['tensor'] * c.tensors + np.where(c.horovod, p['cycle'] * np.log2(c.g), 0)


MODEL = Model(PRIORS, formula, GROUPS)
NUMBERS = ['g', 'N', 'm', 'B', 'T1', 'tensors', 'messages', 'inside', 'gbps']
FLAGS = ['nvlink', 'no_p2p', 'rented', 'rdma', 'host_mpi', 'no_overlap', 'real', 'horovod']


def rows():
    d = pd.read_csv(f'{DATA}/published/scaling.csv', dtype={'gpus_of_nodes': str})
    d['T1'] = d.single_batch / d.single_throughput
    a = d[d.strategy.str.contains('all-reduce|in one machine') & d.parameters.notna() & d.T1.notna()].copy()
    a['T'] = a.batch_per_gpu * a.gpus / a.throughput
    a['src'] = a.family.str.split(' ').str[0].str.replace(',', '')
    a['g'], a['N'], a['m'] = a.gpus, a.nodes, np.minimum(a.gpus_per_node, a.gpus)
    a['B'] = 4 * a.parameters / 1e9
    cifar = a.notes.fillna('').str.contains('resnet18-cifar')
    a['net'] = np.where(cifar, 'resnet18-cifar', a.model)
    a['tensors'] = [len(nets.build(m).tensors) for m in a.net]
    back = a.T1 * 2 / 3
    a['messages'] = np.select(
        [a.fusion == 'none', a.fusion == 'all', a.fusion == 'pytorch', a.fusion == 'horovod'],
        [a.tensors, 1, a.B / .025 + 2, np.minimum(a.tensors, np.maximum(a.B / .064, back / .005))], np.minimum(a.tensors, 10))
    a['inside'], a['gbps'] = a.intra_link.map(NOMINAL), a.inter_gbps
    a['nvlink'] = a.intra_link.str.startswith('nvlink')
    a['no_p2p'] = a.device.str.startswith(NO_P2P) & ~a.device.str.contains('ada')
    a['rented'] = a.inter_link == 'ethernet'
    a['rdma'] = a.transport == 'rdma'
    a['host_mpi'] = a.strategy.str.contains('MPI on the host')
    a['no_overlap'] = a.strategy.str.contains('bsp')
    a['real'] = a.data.fillna('').str.startswith('real')
    a['horovod'] = a.fusion == 'horovod'
    a['full'] = (a.trust == 'full')
    a['usable'] = a.full & ~a.notes.fillna('').str.contains('1.15 times')
    a['cell'] = a.family + '|' + a.framework + '|' + a.device + '|' + a.net + '|' + a.precision
    return a


def cols(a):
    return Cols(a, NUMBERS, FLAGS)


def train(a, curvature=False):
    u = a[a.usable]
    return MODEL.fit(cols(u), u['T'].to_numpy(), capped(u.family, 40), .12, curvature)


def parts(x, a):
    c = cols(a)
    T = MODEL.predict(x, c)
    share = np.clip(1 - c.T1 / T, .005, .995)
    # how computing and communication get in each other's way: nothing to get wrong when one of them is all of the step
    return T, MODEL.sensitivities(x, c), np.sqrt(share * (1 - share))


def variances(x, a):
    u = a[a.usable]
    T, J, K = parts(x, u)
    return components(np.log(u['T'].to_numpy() / T), J, K, u.family.to_numpy(), u.cell.to_numpy(),
                      start=np.array([.3, .4, .2, .15, .8, .3, .2, .08]), width=np.array([.3, .3, 1, 1, 1, 1, .5, 1]))


def left_out(a, by, intervals=False):
    """Predictions with each value of `by` left out in turn; with intervals also their spreads and degrees of freedom."""
    out, sd, df, held = np.zeros(len(a)), np.zeros(len(a)), np.zeros(len(a)), {}
    for k in a[by].unique():
        te = (a[by] == k).to_numpy()
        x = train(a[~te])
        T, J, K = parts(x, a[te])
        out[te] = T
        if intervals:
            s = variances(x, a[~te])
            sd[te], df[te] = spread(s, J, K), a[~te & a.usable].family.nunique() - 1
            held[k] = (x, s)
    return (out, sd, df, held) if intervals else out


def by_family(a, pred, only=None):
    e = np.abs(a['T'] / pred - 1)
    if only is not None:
        e, a = e[only], a[only]
    f = e.groupby(a.family).mean()
    one = f.index.str.contains('one machine')
    return f, f.mean(), f[one].mean(), f[~one].mean()
