"""Compute model of transformer shards; slow twin of crates/analytic/src/transformer/compute."""
import math, os
os.environ.setdefault('OMP_NUM_THREADS','1')
import numpy as np
class Dev:
    def __init__(s,peak,mem,sm): s.peak,s.mem,s.sm=peak,mem,sm
H200=Dev(989.4e12,4.8e12,132); A100=Dev(312e12,2.039e12,108); A100_40=Dev(312e12,1.555e12,108)
B200=Dev(2250e12,8e12,148)   # 2.25P dense
H100_96=Dev(989.4e12,2.4e12,132)
TILES=((128,256),(256,128),(128,128),(64,128),(128,64),(64,64))
def tile_share(tm,tn,p):
    # share lost by a smaller tile: operand bytes per flop  1/tm+1/tn relative to 128x256
    r=(1/tm+1/tn)/(1/128+1/256)
    return 1/(1+p['tile']*(r-1))
def gemm(m,n,k,p,d,batch=1,w=2):
    """seconds; arrays"""
    m,n,k,batch=[np.asarray(a,float) for a in (m,n,k,batch)]
    best=np.full(np.broadcast(m,n,k).shape,np.inf)
    for tm,tn in TILES:
        e=tile_share(tm,tn,p)
        tiles=np.ceil(m/tm)*np.ceil(n/tn)*batch
        per=2.*tm*tn*d.sm/(d.peak*p['share']*e)
        for s in (1,2,4,8):
            ts=tiles*s
            ok=(s==1)|((tiles*(s/2)<d.sm)&(k/s>=512))
            x=ts/d.sm
            waves=np.where(x<=1,1,p['wave']*np.ceil(x)+(1-p['wave'])*x)
            t=waves*per*(k/s+p['k0'])
            if s>1: t=t+s*m*n*8*batch/(d.mem*p['mem'])
            best=np.where(ok&(t<best),t,best)
    mem=w*(m*k+k*n+m*n)*batch/(d.mem*p['mem'])
    return np.maximum(best,mem)+p['kern']
class Shape:
    """per rank: T tokens, h, q width, kv width (of keys), f width, e head width, s sequence, pairs of queries and keys a token has on average"""
def layer(T,s,h,a,g,e,f,t,gated,norm,rope,bias,amp,p,d,flash=True,causal=True,dropout=False,sep=True,tok=None,compiled=False):
    """forward, dX, dW device seconds and kernels. tok: tokens of norms and residuals (sequence parallel)"""
    q=a*e/t; kv=max(g/t,1)*e; f=f/t; tok=T if tok is None else tok
    G=[(T,q+2*kv,h)] if not sep else [(T,q,h),(T,kv,h),(T,kv,h)]
    G+=[(T,h,q)]+([(T,f,h)]*(2 if gated and sep else 1) if not(gated and not sep) else [(T,2*f,h)])+[(T,h,f)]
    M=np.array(G)
    m,n,k=M.T
    fw=gemm(m,n,k,p,d).sum(); dx=gemm(m,k,n,p,d).sum(); dw=gemm(n,k,m,p,d).sum()
    W=(n*k).sum(); ng=len(G)
    stream=d.mem*p['pass']; 
    r=4 if amp else 2
    # norms and residual sums
    hf=2*(2*r + (6 if amp else 0)) + 2*(2*r+2)
    hb=2*(5*r + (6 if amp else 0)) + 2*3*r + (2*2 if bias else 0) + (2*6 if amp else 0)
    kf=4+(2 if amp else 0); kb=10+(4 if amp else 0)
    if dropout: hf+=2*p.get('dropout',5); hb+=2*5; kf+=2;kb+=2
    qf=0;qb=0
    if rope and not compiled: qf=20; qb=20; kf+=6;kb+=10
    elif rope: qf=4;qb=4;kf+=2;kb+=2
    ff,fb=(10,16) if gated else (4,6)
    if compiled and gated: ff,fb=6,10
    kf+=1 if not gated else 2; kb+=1 if not gated else 3
    if bias: fb+=2; qb+=2; kb+=4
    if bias and not gated: pass
    fw+=(tok*h*hf+T*((q+kv)*qf+f*ff))/stream
    dx+=(tok*h*hb+T*((q+kv)*qb+f*fb))/stream
    if amp:
        fw+=6*W/(d.mem*p['mem']); dw+=6*W/(d.mem*p['mem']); kf+=ng;kb+=ng
    # attention
    pairs=(s+1)/2 if causal else s
    if flash:
        lost=p['head']*(d.peak/d.sm)/(H200.peak/H200.sm)   # exponentials a cycle are the same, tensor units are not
        eff=1/(1+lost/e)*(1+lost/128)
        wk=4.*T*(pairs+p['diag'])*q
        io=T*(2*q+2*kv)*2
        fw+=max(wk/(d.peak*p['att']*eff),io/stream)
        dx+=max(2.5*wk/(d.peak*p['attb']*eff),3*io/stream)
        core=0
        kf+=1;kb+=3
    else:
        heads=a/t*T/s
        gq=gemm(np.array([s,s]),np.array([s,e]),np.array([e,s]),p,d,batch=heads).sum()
        sc=heads*s*s
        fwd=gq+sc*p['scf']/stream
        fw+=fwd; dx+=2*gq+sc*p['scb']/stream
        kf+=5;kb+=10
    kern=p['kern']
    fw+=kf*kern; dx+=kb*kern
    return fw,dx,dw,(kf+ng),(kb+2*ng)
def attention_core(T,s,a,e,t,p,d):
    heads=a/t*T/s
    gq=gemm(np.array([s,s]),np.array([s,e]),np.array([e,s]),p,d,batch=heads).sum()
    return gq+heads*s*s*p['scf']/(d.mem*p['pass'])
def head(T,h,V,t,amp,p,d,lf=22,lb=20):
    v=V/t
    fw=gemm(T,v,h,p,d)+T*v*lf/(d.mem*p['mem']); bw=gemm(T,h,v,p,d)+gemm(v,h,T,p,d)+T*v*lb/(d.mem*p['mem'])
    W=v*h
    if amp: fw+=6*W/(d.mem*p['mem']); bw+=6*W/(d.mem*p['mem'])
    r=4 if amp else 2
    fw+=T*h*2*r/(d.mem*p['pass']); bw+=T*h*5*r/(d.mem*p['pass'])
    return float(fw)+5*p['kern'],float(bw)+6*p['kern']
def embedding(T,h,amp,p,d):
    r=4 if amp else 2
    return T*h*2*r/(d.mem*p['pass']), T*h*3*r/(d.mem*p['pass'])
def sustained(p):
    q=dict(p);q['share']=p['share']*p['sust'];q['att']*=p['sust'];q['attb']*=p['sust'];return q
