"""Test vectors for another implementation: inputs and predictions of the fitted formulas, read from priors.toml alone.

    python3 vectors.py     writes vectors_allreduce.csv, vectors_onegpu.csv, vectors_memory.csv (servers.py writes its own)
"""
import tomllib

from common import *
import allreduce as AR
import memory as M
import onegpu as G

priors = tomllib.load(open('priors.toml', 'rb'))


def constants(section, model):
    x = np.array([math.log(priors[section][k.replace('_', '-')]['value']) for k in model.names])
    r = priors[section]['residual']
    groups = {k: next(v['group-spread'] for v in priors[section].values() if v.get('group') == k) for k in model.groups}
    return x, np.array(list(groups.values()) + list(r.values()))


a = AR.rows()
x, s = constants('all-reduce', AR.MODEL)
a['predicted_s'], J, K = AR.parts(x, a)
a['sd_ln'] = spread(s, J, K)
a.groupby('cell').head(2).groupby('family').head(12)[['id', 'family'] + AR.NUMBERS + AR.FLAGS + ['T', 'predicted_s', 'sd_ln']].to_csv('vectors_allreduce.csv', index=False, float_format='%.6g')
g = G.rows()
x, s = constants('one-gpu', G.MODEL)
g['predicted_s'], J, K = G.parts(x, g)
g['sd_ln'] = spread(s, J, K)
g.groupby(['family', 'device', 'precision']).head(2)[['id', 'family', 'model', 'sequence', 'image', 'device', 'precision', 'real'] + G.NUMBERS + G.FLAGS + ['T', 'predicted_s', 'sd_ln']].to_csv('vectors_onegpu.csv', index=False, float_format='%.8g')
M.rows().to_csv('vectors_memory.csv', index=False, float_format='%.8g')
