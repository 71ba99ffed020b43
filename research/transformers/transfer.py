"""What the constants of Hopper give on B200 (SimuMax: ms of a micro-batch) and on H100 of 500 W (torchtitan: tokens a second)."""
from model import *
import json
H=json.load(open('h200.json'));p=sustained(H)
B=Dev(2250e12,7.7e12,148)
meas={1:165.0,2:166.2,4:91.6,8:63.2}
AR={}
for share in (.74,.65,.6,.55):
  for att in (p['att'],.25):
    q=dict(p);q['share']=share;q['att']=att;q['attb']=att*.71
    o=[]
    for t in (1,2,4,8):
        T=4096
        fw,dx,dw,kf,kb=layer(T,4096,8192,64,8,128,28672,t,True,'rms',True,False,False,q,B,sep=False,tok=T/t,compiled=True)
        hf,hb=head(T,8192,128256,t,False,q,B,lf=10,lb=8)
        S=T*8192*2
        bw=900e9*.705
        ag=0 if t==1 else (t-1)/t*S/bw+40e-6+(t-1)*2e-6
        L=6 if t==1 else 12
        comm=4*ag+ 4*ag  # fwd 2ag+2rs; bwd ag+rs exposed... rough
        o.append(1e3*(L*(fw+dx+dw+ (comm if t>1 else 0))+hf+hb))
    print(share,round(att,3),[round(a,1) for a in o],'host/layer',(kf+kb)*36e-3*12)
print(meas)
# torchtitan 8B H100 2.4TB/s 500W
d=H100_96
for share in (.745,.68,.62):
    q=dict(p);q['share']=share
    for comp in (False,True):
        T=2*8192
        fw,dx,dw,kf,kb=layer(T,8192,4096,32,8,128,14336,1,True,'rms',True,False,False,q,d,sep=True,compiled=comp)
        hf,hb=head(T,4096,128256,1,False,q,d,lf=22 if not comp else 10,lb=20 if not comp else 8)
        tot=32*(fw*1.6+dx+dw)+hf+hb
        print('titan',share,comp,round(T/tot),'meas',6667 if comp else 5762)
