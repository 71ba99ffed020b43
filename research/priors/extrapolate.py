"""How errors grow beyond the range that was fitted: train on small ones, judge large ones, and compare with a fit to all."""
from common import *
import allreduce as AR
import onegpu as G
a=AR.rows()
for label,small,large in (('GPUs: fitted up to 8, judged from 16',a.g<=8,a.g>=16),('GPUs: fitted up to 4, judged from 16',a.g<=4,a.g>=16),('GPUs: fitted from 8, judged up to 4',a.g>=8,a.g<=4),
                          ('gradients: fitted up to 110 MB, judged from 240',a.B<=.11,a.B>=.24),('rate: fitted up to 24 Gbit/s or one machine, judged from 50',(a.gbps<=24)|(a.N==1),(a.gbps>=50)&(a.N>1))):
    x=AR.train(a[small]); y=AR.train(a); t=a[large&a.usable]
    for who,z in (('small only',x),('all',y)):
        l=np.log(t['T']/AR.MODEL.predict(z,AR.cols(t))); f=l.groupby(t.family)
        print(f'{label:62s} {who:10s} mean |ln| over families {l.abs().groupby(t.family).mean().mean():.3f} bias {f.mean().mean():+.3f}')
s=G.rows(); s=s[~s.own]
for label,small,large in (('batch: fitted up to 32, judged from 128',s.batch<=32,s.batch>=128),('batch: fitted from 64, judged up to 16',s.batch>=64,s.batch<=16),('peak: fitted up to 16 TFLOP/s fp32, judged from 19',s.fp32<=16.5e12,s.fp32>=19e12),('fp32 and tf32 only, judged 16 bits',s.width==4,s.width==2)):
    x=G.train(s[small]); y=G.train(s); t=s[large]
    for who,z in (('small only',x),('all',y)):
        l=np.log(t['T']/G.MODEL.predict(z,G.cols(t)))
        print(f'one GPU, {label:55s} {who:10s} factor {math.exp(l.abs().mean()):.3f} bias {l.mean():+.3f}')
