"""Writes validation/transformer-steps: measured steps and shards of one H200, and published steps of parallel runs."""
import csv
import gzip
import io
import json
import os
import statistics

from scenario import COLUMNS, columns

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get('STEPCAST_DATA', os.path.join(HERE, '../../../shared/data'))
OUT = os.path.join(HERE, '../../validation/transformer-steps')


def packed(name, comment, header, rows):
    text = io.StringIO()
    text.write(''.join(f'# {line}\n' for line in comment))
    writer = csv.DictWriter(text, header, extrasaction='ignore', lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    with open(os.path.join(OUT, name), 'wb') as file:
        file.write(gzip.compress(text.getvalue().encode(), mtime=0))


def h200():
    header = ['kind', 'architecture', 'hidden', 'heads', 'kv_heads', 'mlp_width', 'layers', 'sequence', 'micro_batch',
              'vocabulary', 'precision', 'recompute', 'tensor', 'experts', 'active', 'forward_ms', 'backward_ms', 'step_ms']
    rows = []
    for line in gzip.open(f'{DATA}/measured/llm_h200.jsonl.gz', 'rt'):
        run = json.loads(line)
        if run['kind'] == 'machine':
            continue
        moe = run['kind'] == 'moe'
        row = {
            'kind': run['kind'] if not moe else run['impl'].replace('_mm', ''),
            'architecture': run.get('arch', 'llama'), 'hidden': run['h'], 'heads': run.get('heads', run['h'] // 64),
            'kv_heads': run.get('kv', run['h'] // 64), 'mlp_width': run['ffn'], 'layers': run.get('L', 1),
            'sequence': run.get('seq', run.get('tokens')), 'micro_batch': run.get('mb', 1),
            'vocabulary': run.get('vocab', 32000), 'precision': {'amp': 'amp-bf16'}.get(run['precision'], run['precision']),
            'recompute': str(run.get('recompute', False)).lower(), 'tensor': run.get('t', 1),
            'experts': run.get('experts', 0), 'active': run.get('topk', 0)}
        if run['kind'] == 'step':
            row['step_ms'] = round(statistics.median(run['step_ms']), 4)
            row['forward_ms'] = row['backward_ms'] = 0
        else:
            row.update(forward_ms=run['fwd_ms'], backward_ms=run['bwd_ms'], step_ms=0)
        rows.append(row)
    packed('h200.csv.gz', ['Decoder training on one H200: PyTorch 2.11, CUDA 13.0, eager, flash attention, fused AdamW, '
                           'measured for this project.',
                           'step: median of consecutive steps. block, head: the shard of one of `tensor` ranks, behind a '
                           'pause. bmm, grouped: mixture of experts.'], header, rows)


def is_fitted(row):
    """Whether constants are fitted to a run: not if its source is left out as a whole, or if it is out of line with its neighbours for a
    reason that no model of computing and links has. vTrain: swapped memory, micro-batches of 2 at 4 and 8 ranks of the small model, and
    2 ranks of the large one. llm-foundry: short sequences of 760m on 80 GB, 1b on 32 GPUs, 13b on 8 and 70b on 64 GPUs of 40 GB."""
    settings = row['settings'].split(' ')
    large = row['device'] == 'a100-sxm4-80gb'
    small = 'micro-batch=2' in settings and ('tensor=4' in settings or 'tensor=8' in settings)
    rules = {
        ('vTrain', 3072): not small and 'micro-batch=64' not in settings,
        ('vTrain', 8192): 'tensor=2' not in settings,
        ('llm-foundry', 1536): row['sequence'] > 1024 or not large,
        ('llm-foundry', 2048): row['gpus'] != 32,
        ('llm-foundry', 5120): row['gpus'] != 8 or large,
        ('llm-foundry', 8192): row['gpus'] != 64 or large,
    }
    return row['publisher'] not in ('Korthikanti', 'torchtitan') and rules.get((row['publisher'], row['hidden']), True)


def published():
    rows = []

    def add(family, source, shape, layers, hidden, heads, vocabulary, sequence, device, gpus, links, seconds, **plan):
        strategy = {k[1:]: plan.pop(k) for k in list(plan) if k.startswith('_')}
        words = [f'{k.replace("_", "-")}={v}' for k, v in plan.items()] + [f'/{k}={v}' for k, v in strategy.items()]
        inside, outside, ports = links
        row = {'family': family, 'publisher': family.split(' ')[0].strip(','), 'source': source, 'shape': shape,
               'layers': int(layers), 'hidden': int(hidden), 'heads': heads, 'vocabulary': vocabulary, 'sequence': int(sequence),
               'device': device, 'gpus': int(gpus), 'node': 8, 'inside': inside, 'outside': outside, 'ports': ports,
               'settings': ' '.join(words), 'seconds': round(seconds, 6)}
        together = words[0] if family.startswith('SimuMax') else f'hidden {hidden}'
        rows.append(columns(row) | {'left_out': f'{family}, {together}', 'fitted': str(is_fitted(row)).lower()})

    def table(name):
        return csv.DictReader(open(f'{DATA}/published/{name}'))

    megatron = {'overlap': 'megatron-2021', 'overlap_tensor': 'true', 'attention': 'unfused', 'dropout': 'true', 'states': 'mixed-fp16', '_precision': 'fp16'}
    newer = {key: value for key, value in megatron.items() if key != 'overlap_tensor'} | {'overlap': 'megatron'}
    # DeepSpeed without ZeRO sums gradients after the last backward pass.
    for r in table('vtrain_megatron_deepspeed_a100_multinode.csv'):
        add('vTrain multi-node, A100', r['source'], 'gpt', r['# layers'], r['hidden size'], r['attention heads'], 51200,
            r['sequence length'], 'a100-sxm4-80gb', r['# GPUs'], ('nvlink3', 'infiniband-edr', 8),
            float(r['iteration time (ms)']) / 1e3, tensor=r['tensor parallelism'], pipeline=r['pipeline parallelism'],
            data=r['data parallelism'], micro_batch=r['micro batch'], global_batch=r['global batch'], recompute='layer', overlap_gradients='false', **megatron)
    for r in table('korthikanti_tab5_iteration_time.csv'):
        full = r['recompute'].startswith('full')
        add('Korthikanti table 5, A100', r['source'], 'gpt', r['layers'], r['hidden'], r['heads'], 51200, r['seq_len'],
            'a100-sxm4-80gb', r['num_gpus'], ('nvlink3', 'infiniband-hdr', 8), float(r['iteration_time_s']), tensor=r['tp'],
            pipeline=r['pp'], data=r['dp'], virtual_stages=r['pp_interleaving'], micro_batch=r['micro_batch'],
            global_batch=r['global_batch'], recompute='layer' if full else 'attention',
            sequence_parallel=str(not full).lower(), **newer)
    sizes = {'125m': (12, 768, 12), '350m': (24, 1024, 16), '760m': (24, 1536, 12), '1b': (24, 2048, 16),
             '3b': (32, 2560, 20), '7b': (32, 4096, 32), '13b': (40, 5120, 40), '30b': (48, 7168, 56), '70b': (80, 8192, 64)}
    for r in table('llm_foundry_mpt_fsdp.csv'):
        layers, hidden, heads = sizes[r['Model']]
        pure = r['MP Mode'] == 'PURE'
        again = {'recompute': 'layer'} if r['Activation Checkpointing'] == 'True' else {}
        seconds = int(r['GlobalBatchSize']) * int(r['SeqLen (T)']) / float(r['Throughput (T/s)'])
        add('llm-foundry, A100', r['source'], 'gpt', layers, hidden, heads, 50368, r['SeqLen (T)'],
            'a100-sxm4-80gb' if '80gb' in r['GPU'] else 'a100-sxm4-40gb', r['# GPUs'], ('nvlink3', 'infiniband-hdr', 8), seconds,
            sharding='zero-3', states='bf16' if pure else 'fp32', overlap='fsdp2', attention='triton', micro_batch=r['MicroBatchSize'],
            global_batch=r['GlobalBatchSize'], _precision='bf16', **again)
    for r in table('torchtitan_llama3.csv'):
        sequence, context = int(r['seq_len'].split()[0]), int(r['cp'])
        batch = int(r['local_batch']) * 8 // context
        again = 'layer' if r['activation_checkpointing'] == 'full' else 'operators'
        extra = {'recipe': 'fp8'} if r['float8'] != 'no' else {}
        if context > 1:
            extra['context'] = context
        add('torchtitan, H100', r['source'], 'llama3-8b', 32, 4096, 32, 128256, sequence, 'h100-sxm5|memory-rate=2.4 TB/s|power=500 W', r['num_gpus'],
            ('nvlink4', 'infiniband-ndr', 8), batch * sequence / (8 * float(r['tokens_per_sec_per_gpu'])), sharding='zero-3',
            states='fp32', overlap='torchtitan', micro_batch=r['local_batch'], global_batch=batch, recompute=again,
            _precision='bf16', _compiled=str(r['torch_compile'] == 'yes').lower(), **extra)
    # The source's guide to these runs turns every overlap off.
    for r in table('simumax_b200_megatron_measured.csv'):
        d, mb, m = int(r['dp']), int(r['micro_batch_size']), int(r['micro_batch_count'])
        tp = int(r['tp'])
        add('SimuMax, B200', r['source'], 'llama3-70b', r['num_layers'], 8192, 64, 128256, r['seq_len'].split()[0], 'b200', 8,
            ('nvlink5', 'infiniband-ndr', 8), float(r['measured_iteration_ms']) / 1e3, tensor=tp,
            sequence_parallel=str(tp > 1).lower(), pipeline=r['pp'], data=d, sharding='zero-1', micro_batch=mb,
            global_batch=d * mb * m, overlap='none', _precision='bf16')
    packed('published.csv.gz', ['Published steps of transformers on several GPUs; every row names its source.',
                                'left_out: runs of one model are left out together; of SimuMax, which has only one, of one number of ranks.',
                                'model, rated, plan, strategy: keys of these tables of a scenario.',
                                'Vocabularies of vTrain and Korthikanti are padded to 51,200.'],
           ['family', 'publisher', 'left_out', 'fitted', 'source', *COLUMNS], rows)
    return rows


if __name__ == '__main__':
    h200()
    print(len(published()))
