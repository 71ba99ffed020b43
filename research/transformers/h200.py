"""Fits the constants of Hopper, of memory and of the host to the rows of one H200; `lomo` leaves whole models out."""
import sys,gzip,json,os,statistics as st
from model import *
from scipy.optimize import least_squares
D=os.environ.get('STEPCAST_DATA',os.path.join(os.path.dirname(os.path.abspath(__file__)),'../../../shared/data'))+'/'
rows=[json.loads(l) for l in gzip.open(D+'measured/llm_h200.jsonl.gz','rt')]
d=H200
def lay(r,t,p):
    l=r['arch']=='llama'
    return layer(r['seq']*r['mb'],r['seq'],r['h'],r['heads'],r['kv'],r['h']//r['heads'],r['ffn'],t,l,'rms' if l else 'ln',l,not l,r['precision']=='amp',p,d,sep=l)
def moe(r,p):
    T=r['tokens'];k=r['topk'];E=r['experts'];h=r['h'];f=r['ffn'];n=T*k/E
    def g(m,nn,kk): return float(gemm(m,nn,kk,p,d,batch=E))
    fw=2*g(n,f,h)+g(n,h,f); bw=2*(g(n,h,f)+g(f,h,n))+g(n,f,h)+g(h,f,n)
    s=d.mem*p['pass']
    fw+=float(gemm(T,E,h,p,d))+(T*k*f*10+T*k*h*p['dispf']+T*h*20)/s+20*p['kern']
    bw+=2*float(gemm(T,E,h,p,d))+(T*k*f*16+T*k*h*p['dispb']+T*h*30)/s+30*p['kern']
    return fw,bw
def step(r,p0,parts=False):
    p=sustained(p0)
    amp=r['precision']=='amp';T=r['seq']*r['mb']
    fw,dx,dw,kf,kb=lay(r,1,p)
    hf,hb=head(T,r['h'],r['vocab'],1,amp,p,d); ef,eb=embedding(T,r['h'],amp,p,d)
    rec=r['recompute']
    F=r['L']*fw+hf+ef; B=r['L']*(dx+dw+(fw if rec else 0))+hb+eb
    emb=r['vocab']*r['h']
    B+=emb*(4 if amp else 2)*(3 if r['arch']=='gpt' else 1)/(d.mem*p['mem'])  # dense gradient of the embedding: zeroed; tied: added
    O=r['params']*(28 if amp else 14)/(d.mem*p['opt'])
    host=p['host']*(r['L']*(kf+kb+(kf if rec else 0))+p['hbase'])+(p['ckpt']*r['L'] if rec else 0)
    if parts: return F,B,O,host
    return max(F+B+O,host)
p0=dict(share=.8,tile=2,wave=.4,k0=250,mem=.72,kern=1.5e-6,**{'pass':.6},att=.3,attb=.25,head=16,diag=64,sust=.92,opt=.72,host=40e-6,hbase=60,ckpt=1.5e-3,dispf=20,dispb=30)
ks=list(p0)
TH={'kern','hbase'}
def resid(R,p):
    o=[]
    for r in R:
        if r['kind']=='block':
            fw,dx,dw,_,_=lay(r,r['t'],p); o+=[math.log(fw*1e3/r['fwd_ms']),math.log((dx+dw)*1e3/r['bwd_ms'])]
        elif r['kind']=='head':
            f,b=head(r['seq']*r['mb'],r['h'],r['vocab'],r['t'],r['precision']=='amp',p,d); o+=[math.log(f*1e3/r['fwd_ms']),math.log(b*1e3/r['bwd_ms'])]
        elif r['kind']=='moe':
            f,b=moe(r,p); o+=[math.log(f*1e3/r['fwd_ms']),math.log(b*1e3/r['bwd_ms'])]
        elif r['kind']=='step': o.append(math.log(step(r,p)*1e3/st.median(r['step_ms'])))
    return np.array(o)
def fit(R,x0=None,fixed=()):
    x00=np.log([p0[k] for k in ks]); x0=x00 if x0 is None else x0
    free=[i for i,k in enumerate(ks) if k not in fixed]
    def P(x): y=x00.copy(); y[free]=x; return dict(zip(ks,np.exp(y)))
    s=least_squares(lambda x:np.concatenate([resid(R,P(x)),.05*(x-x00[free])]),x0[free],loss='soft_l1',f_scale=.08,max_nfev=12,x_scale=1.0)
    y=x00.copy();y[free]=s.x
    return P(s.x),y
def show(p,R,label):
    for kind in ('block','head','moe','step'):
        rr=[r for r in R if r['kind']==kind]
        if not rr: continue
        e=np.exp(resid(rr,p))-1
        print(label,kind,'mean %.1f worst %.1f bias %.1f'%(100*abs(e).mean(),100*abs(e).max(),100*e.mean()))
def lomo(R):
    """Errors with one model, or one width of experts, left out: one step of Gauss and Newton from the common fit."""
    x0 = np.log([p0[k] for k in ks])
    at = lambda x: resid(R, dict(zip(ks, np.exp(x))))
    r = at(x0)
    J = np.array([(at(x0 + .05 * e) - at(x0 - .05 * e)) / .1 for e in np.eye(len(ks))]).T
    name = lambda row: row.get('model') or ('moe', row['h'])
    of = [(name(row), row['kind']) for row in R for _ in range(1 if row['kind'] == 'step' else 2)]
    keep = np.array([not row.get('repeat') for row in R for _ in range(1 if row['kind'] == 'step' else 2)])
    errors = {}
    for left in sorted({n for n, _ in of}, key=str):
        out = np.array([n == left for n, _ in of])
        use = ~out & keep
        dx, w = np.zeros(len(ks)), np.ones(len(r))
        for _ in range(20):
            w = 1 / np.sqrt(np.sqrt(1 + ((r + J @ dx) / .08) ** 2))
            A = np.vstack([(J * w[:, None])[use], .05 * np.eye(len(ks))])
            dx = np.linalg.lstsq(A, np.concatenate([-(r * w)[use], np.zeros(len(ks))]), rcond=None)[0]
        for index in np.where(out)[0]:
            errors.setdefault(of[index][1], []).append((np.exp(r[index] + J[index] @ dx) - 1, left))
    for kind, found in errors.items():
        e = np.array([error for error, _ in found])
        worst = found[int(abs(e).argmax())]
        print(kind, 'left out: mean %.1f worst %.1f (%s), %d figures' % (100 * abs(e).mean(), 100 * worst[0], worst[1], len(e)))


if __name__=='__main__':
    R0=[r for r in rows if r['kind']!='machine' and not r.get('repeat')]
    if 'lomo' in sys.argv:
        p0.update(json.load(open('h200.json')))
        lomo([r for r in rows if r['kind']!='machine'])
    else:
        p,x=fit(R0)
        print({k:float('%.3g'%v) for k,v in p.items()})
        show(p,R0,'in-sample')
        json.dump(p,open('h200.json','w'))
