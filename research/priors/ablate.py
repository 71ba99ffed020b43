"""What each term is worth: one term switched off, source left out."""
from common import *
import allreduce as AR
import onegpu as G
a=AR.rows(); base=dict(AR.PRIORS)
def ar(label,**fix):
    P=dict(base)
    for k,v in fix.items(): P[k]=(v,1e-4)+P[k][2:]
    AR.MODEL=Model(P,AR.formula,AR.GROUPS)
    p=AR.left_out(a,'src'); f=AR.by_family(a,p); f2=AR.by_family(a,p,a.full)
    print(f'all-reduce, {label:60s} all {f[1]:.4f} (several {f[3]:.3f}) full trust {f2[1]:.4f} (several {f2[3]:.3f})',flush=True)
ar('as shipped')
ar('nominal rates reached',tcp_flow=1e3,tcp_vm=1e3,rdma=.95,p2p=.9,bounce=1e3,shared=1e4,nv=.9,mpi=6.)
ar('everything may hide (shows 0)',shows_in=1e-6,shows_x=1e-6)
ar('the whole backward pass hides',hides=1.)
ar('no losses',loss_in=1e-9,loss_x=1e-9,loss_real=1e-9)
ar('no start-ups',hop_in=1e-12,hop_x=1e-12,tensor=1e-12,cycle=1e-12)
ar('no Horovod cycle',cycle=1e-12)
ar('no shared host path',shared=1e4)
ar('rented machines like own ones',tcp_vm=2.3)
g=G.rows(); own=g.own.to_numpy(); gb=dict(G.PRIORS)
def og(label,rows=None,**fix):
    P=dict(gb)
    for k,v in fix.items(): P[k]=(v,1e-4)+P[k][2:]
    G.MODEL=Model(P,G.formula,G.GROUPS)
    t=g if rows is None else g[rows]
    l=np.log(t['T']/G.left_out(t,'src')).to_numpy(); o=t.own.to_numpy(); f=G.score(l[~o])
    print(f'one GPU, {label:60s} factor {f[0]:.3f} within 1.65 {f[1]:.3f}',flush=True)
og('as shipped')
og('without the H200 steps of the project',~own)
og('tensor units always fed',feed_square=1e4,feed_conv=1e4,feed_linear=1e4)
og('no Winograd: square as conv',square=.8)
og('no power limit',power=1e-6)
og('no host, no start of kernels',op=1e-9,gradient=1e-9,start=1e-9)
og('no passes over memory',memory=1e3)
og('no layout, no compiler',channels_last=1.,compiled=1.)
og('Kepler, AMD, dual units like others',kepler=1.,amd=1.,dual=1.)
rx=~((g.device=='rx-5700')&(g.precision=='fp16')).to_numpy(); og('without the RX 5700 in fp16 (12 rows)',rx)
