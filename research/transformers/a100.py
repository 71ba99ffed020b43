"""Fits the constants of Ampere to llm-foundry and vTrain's multi-node runs; Korthikanti's table is left out."""
import csv,json,os,sys
from model import *
from scipy.optimize import least_squares
D=os.environ.get('STEPCAST_DATA',os.path.join(os.path.dirname(os.path.abspath(__file__)),'../../../shared/data'))+'/published/'
NV_BUS=235e9; NV_LAT=2.5e-6   # per step
def ar(S,n,nodes=1,nic=25e9*.85):
    if n==1: return 0
    if nodes==1: return 2*(n-1)/n*S/NV_BUS + 2*(n-1)*NV_LAT+15e-6
    return 2*(n-1)/n*S/(nic*(n/nodes)) +2*(n-1)*NV_LAT+30e-6
def foundry():
    H={'125m':(12,768,12),'350m':(24,1024,16),'760m':(24,1536,12),'1b':(24,2048,16),'3b':(32,2560,20),'7b':(32,4096,32),'13b':(40,5120,40),'30b':(48,7168,56),'70b':(80,8192,64)}
    o=[]
    for r in csv.DictReader(open(D+'llm_foundry_mpt_fsdp.csv')):
        L,h,a=H[r['Model']]
        o.append(dict(set='foundry',model=r['Model'],L=L,h=h,a=a,s=int(r['SeqLen (T)']),n=int(r['# GPUs']),mb=int(r['MicroBatchSize']),ga=int(r['GradAccum']),gb=int(r['GlobalBatchSize']),tps=float(r['Throughput (T/s)']),pure=r['MP Mode']=='PURE',rec=r['Activation Checkpointing']=='True',dev=A100 if '80GB' in r['section'] else A100_40))
    for r in o: r['time']=r['gb']*r['s']/r['tps']
    return o
def t_foundry(r,p):
    d=r['dev'];T=r['s']*r['mb'];h=r['h'];L=r['L']
    fw,dx,dw,kf,kb=layer(T,r['s'],h,r['a'],r['a'],h//r['a'],4*h,1,False,'ln',False,True,False,p,d,sep=False)
    hf,hb=head(T,h,50368,1,False,p,d);ef,eb=embedding(T,h,False,p,d)
    n=r['n'];nodes=max(n//8,1)
    W=12*h*h
    if nodes==1: g=(n-1)/n*W*2/NV_BUS+30e-6; rs=(n-1)/n*W*(2 if r['pure'] else 4)/NV_BUS+30e-6
    else:
        bw=8*25e9*p['ib']; g=(n-1)/n*W*2/bw+60e-6; rs=(n-1)/n*W*(2 if r['pure'] else 4)/bw+60e-6
    hw=p['host']
    lf=max(fw,kf*hw); lb=max(dx+dw,kb*hw)+(max(fw,kf*hw) if r['rec'] else 0)
    F=lf+ (L-1)*max(lf,g)+g; B=(L-1)*max(lb,g+rs)+lb+rs
    P=12*L*h*h+50368*h
    O=P/n*(28)/(d.mem*p['opt'])
    return r['ga']*(F+B+hf+hb+ef+eb)+O
def mega():
    o=[]
    for r in csv.DictReader(open(D+'vtrain_megatron_deepspeed_a100_multinode.csv')):
        o.append(dict(set='vtrain',model=r['Parameters (billion)'],h=int(r['hidden size']),a=int(r['attention heads']),L=int(r['# layers']),s=int(r['sequence length']),t=int(r['tensor parallelism']),dp=int(r['data parallelism']),pp=int(r['pipeline parallelism']),v=1,mb=int(r['micro batch']),gb=int(r['global batch']),rec='full',sp=False,time=float(r['iteration time (ms)'])/1e3,V=51200))
    for r in csv.DictReader(open(D+'korthikanti_tab5_iteration_time.csv')):
        o.append(dict(set='kort',model=r['model'],h=int(r['hidden']),a=int(r['heads']),L=int(r['layers']),s=int(r['seq_len']),t=int(r['tp']),dp=int(r['dp']),pp=int(r['pp']),v=int(r['pp_interleaving']),mb=int(r['micro_batch']),gb=int(r['global_batch']),rec='full' if r['recompute'].startswith('full') else 'sel',sp=not r['recompute'].startswith('full'),time=float(r['iteration_time_s']),V=51200))
    return o
def t_mega(r,p,parts=False):
    d=A100;T=r['s']*r['mb'];h=r['h'];L=r['L'];t=r['t'];pp=r['pp'];v=r['v'];a=r['a']
    fw,dx,dw,kf,kb=layer(T,r['s'],h,a,a,h//a,4*h,t,False,'ln',False,True,False,p,d,flash=False,causal=False,dropout=True,sep=False,tok=T/t if r['sp'] else T)
    again=fw if r['rec']=='full' else attention_core(T,r['s'],a,h//a,t,p,d)
    S=T*h*2
    nodes=max(t//8,1)
    A=ar(S,t,nodes)
    comm_f=2*A; comm_b=max(2*A-dw,0)
    if r['sp']: comm_b=max(A-dw,0)+A
    hw=p['host']
    lf=max(fw+comm_f,kf*hw); la=max(again+(comm_f if r['rec']=='full' else 0), kf*hw if r['rec']=='full' else 0)
    lb=max(dx+dw+comm_b,kb*hw)+la
    hf,hb=head(T,h,r['V'],t,False,p,d,lf=10,lb=8)
    hf+=A; 
    F=L/pp*lf;B=L/pp*lb
    m=r['gb']//(r['dp']*r['mb'])
    send=0
    if pp>1:
        nic=25e9*p['ib'] if r['set']=='kort' else 800e9/8/8*p['ib']
        send=S/t/nic+ S/NV_BUS+30e-6
    if pp==1: time=m*(F+B+hf+hb)
    else:
        # last stage has the head
        last=F+B+hf+hb
        if v==1: time=(m-1)*(last+2*send)+ pp*(F+B)+hf+hb+ 2*(pp-1)*send
        else: time=m*(last)+(pp-1)*(F+B)/v+2*(pp-1)*send
    P=(12*h*h*L/pp+ (r['V']*h if pp==1 else r['V']*h))/t
    # gradients
    dp=r['dp']
    if dp>1:
        bytes_=P*2
        per_node=max(8//t,1) if pp==1 or True else 1
        per_node=min(per_node,dp)
        nodes=dp//per_node
        nicr=800e9/8*p['ib']*per_node/8
        bw=min(NV_BUS,nicr) if nodes>1 else NV_BUS
        time+=2*(dp-1)/dp*bytes_/bw
    time+=P*(2+2+2*16)/(d.mem*p['opt'])
    return time
H=json.load(open('h200.json'))
p0=dict(H); p0.update(share=.75,att=.5,attb=.45,scf=12,scb=20,ib=.7,**{'pass':.75})
def resid(R,p): return np.array([math.log((t_foundry(r,p) if r['set']=='foundry' else t_mega(r,p))/r['time']) for r in R])
def gn(R,free,iters=2):
    x=np.log([p0[k] for k in free]); x0=x.copy()
    P=lambda x:{**p0,**dict(zip(free,np.exp(x)))}
    for it in range(iters):
        r=resid(R,P(x)); J=np.empty((len(R),len(free)))
        for i in range(len(free)):
            y=x.copy();y[i]+=.1;J[:,i]=(resid(R,P(y))-r)/.1
        w=1/np.sqrt(1+(r/.05)**2)
        for _ in range(10):
            A=np.vstack([J*w[:,None],.3*np.eye(len(free))]);b=np.concatenate([-r*w,.3*(x0-x)])
            dx=np.linalg.lstsq(A,b,rcond=None)[0]; w=1/np.sqrt(1+((r+J@dx)/.05)**2)
        x=x+dx
    return P(x),r+J@dx,J,x
def rep(e,l): e=np.exp(e)-1; print(l,'mean %.1f median %.1f worst %.1f bias %.1f'%(100*abs(e).mean(),100*np.median(abs(e)),100*abs(e).max(),100*e.mean()),flush=True)
if __name__=='__main__':
    Fo=foundry();Me=mega();V=[r for r in Me if r['set']=='vtrain'];K=[r for r in Me if r['set']=='kort']
    free=('share','att','attb','scf','scb','ib')
    R=Fo+V
    p,lin,J,x=gn(R,free,3)
    print({k:float('%.3g'%p[k]) for k in free})
    rep(lin[:len(Fo)],'foundry lin');rep(lin[len(Fo):],'vtrain lin')
    rk=resid(K,p);rep(rk,'kort');print(rk.round(3))
    for r,e in zip(R,lin):
        if abs(e)>.1: print(r['set'],r['model'],{k:r.get(k) for k in('t','pp','dp','mb','rec','s','n','pure')},round(e,3))
    json.dump(p,open('a100.json','w'))
