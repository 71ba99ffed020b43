"""The runs of one GPU that the zoo can describe, as `stepcast validate single-gpu` reads them.

    python3 ship_single_gpu.py     writes ../../validation/single-gpu/runs.csv.gz
"""
import csv
import gzip
import io
import os

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get('STEPCAST_DATA', f'{HERE}/../../../shared/data')
COLUMNS = ['id', 'family', 'source', 'framework', 'model', 'sequence', 'device', 'precision', 'computed', 'batch', 'optimiser', 'compiled', 'channels_last', 'data', 'throughput']


# Devices that have no rate for products of 16 bits: frameworks compute in 32 bits and store in 16.
NO_HALF = 'gtx-1080-ti', 'rx-5700'


def described(r):
    """Left out: networks that the zoo does not have, and azure's MobileNet, whose image size is not stated."""
    return r['zoo'] in ('yes', 'custom') and r['model'] != 'resnet18-cifar' and (r['family'], r['model']) != ('azure', 'mobilenet-v2')


def settings(r):
    """The settings that onegpu.py reads from the notes."""
    adam = 'adam' in r['optimiser'] or 'bert' in r['model'] or 'gpt' in r['model']
    flag = lambda holds: 'true' if holds else 'false'
    computed = 'fp32' if r['precision'] == 'fp16' and r['device'] in NO_HALF else r['precision']
    return dict(r, computed=computed, optimiser='none' if 'no optimiser' in r['notes'] else 'adam' if adam else 'sgd', compiled=flag(r['compiled']),
                channels_last=flag('channels last' in r['notes']), data='real' if r['data'].startswith('real') else '')


rows = list(csv.DictReader(open(f'{DATA}/published/single_gpu.csv')))
text = io.StringIO()
out = csv.DictWriter(text, COLUMNS, extrasaction='ignore', lineterminator='\n')
out.writeheader()
out.writerows(settings(r) for r in rows if described(r))
folder = f'{HERE}/../../validation/single-gpu'
os.makedirs(folder, exist_ok=True)
with open(f'{folder}/runs.csv.gz', 'wb') as file, gzip.GzipFile(filename='', mode='wb', fileobj=file, mtime=0) as packed:
    packed.write(text.getvalue().encode())
