#!/bin/bash
# GPT-3 13B on four machines of eight GPUs, with Megatron-LM:
#   stepcast predict examples/launch/megatron.sh --machine dgx-h100
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8

TP=4
PP=${PP:-2}
GLOBAL_BATCH=$((16 * 8))

MODEL_ARGS=(
    --num-layers 40
    --hidden-size 5120
    --num-attention-heads 40
    --seq-length 2048
    --max-position-embeddings 2048
    --vocab-size 50257
    --hidden-dropout 0
    --attention-dropout 0
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP
    --sequence-parallel
    --pipeline-model-parallel-size $PP
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
)
TRAIN_ARGS="--micro-batch-size 1 --global-batch-size $GLOBAL_BATCH --train-iters 100000 --lr 1e-4 --bf16"

srun torchrun --nproc-per-node 8 pretrain_gpt.py ${MODEL_ARGS[@]} ${PARALLEL_ARGS[@]} $TRAIN_ARGS \
    --data-path $DATA --save /checkpoints
