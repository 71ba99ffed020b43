"""Start, latency and share of NVLink from vTrain's table of all-reduces on A100, by two laws.

Links carry a share of their nominal rate B, 2(n-1)/n S/(share B); or links carry B, and what a rank copies through its own buffers takes
as long as a share of the tensor on the link, (2(n-1)/n + copies) S/B. At 1 GiB the second, with copies 0.53, holds within 1.3 % for
every number of GPUs from 2 to 8. Shipped is the first beside a copy of each rank's own part, S/(1.65 n B), which NCCL's gathers on A100,
H100 and B200 show, too (OWN_PART of stepcast-analytic)."""
import gzip,csv,math,os
import numpy as np
from scipy.optimize import least_squares
R=[(int(r['num_gpus']),int(r['size_bytes']),float(r['time_ns_outofplace'])*1e-9,r['gpu']) for r in csv.DictReader(gzip.open(os.path.join(os.environ.get('STEPCAST_DATA',os.path.join(os.path.dirname(os.path.abspath(__file__)),'../../../shared/data')),'published/vtrain_nccl_allreduce_intranode.csv.gz'),'rt'))]
for n in (2,4,8):
    for mb in (1,4,16,64,256,1024):
        t=[x for x in R if x[0]==n and x[1]==mb<<20 and x[3]=='a100'][0][2]
        print(n,mb,'us',round(t*1e6,1),'busbw',round(2*(n-1)/n*(mb<<20)/t/1e9,1))
A=[x for x in R if x[3]=='a100' and (x[1]>>20) in (1,2,4,8,16,32,64,128,256,512,1024)]
n=np.array([a[0] for a in A]);s=np.array([a[1] for a in A]);t=np.array([a[2] for a in A])
def start(x): return np.exp(x[0])+2*(n-1)*np.exp(x[1])
LAWS={'share':(lambda x:start(x)+2*(n-1)/n*s/(300e9*np.exp(x[2])),.75),'copies':(lambda x:start(x)+(2*(n-1)/n+np.exp(x[2]))*s/300e9,.55)}
for name,(f,first) in LAWS.items():
    r=least_squares(lambda x:np.log(f(x)/t),np.log([30e-6,2e-6,first]))
    print(name,np.exp(r.x),'mean err',abs(np.exp(r.fun)-1).mean(),abs(np.exp(r.fun)-1).max())
for g in range(2,9):
    one=[x[2] for x in R if x[3]=='a100' and x[0]==g and x[1]==1<<30][0]
    print(g,'GPUs, 1 GiB: ms %.3f, by copies of 0.53 %.3f'%(1e3*one,1e3*(2*(g-1)/g+.53)*2**30/300e9))
