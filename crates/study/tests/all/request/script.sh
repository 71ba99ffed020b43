#!/bin/bash
#SBATCH --nodes=4 --gpus-per-node=8
GPUS=8
NNODES=${SLURM_NNODES:-4}
WORLD=$(($GPUS*$NNODES))
HOST=$(hostname)
HOSTS=$(scontrol show hostnames | wc -l)
# --num-layers 99
GPT_ARGS=(
    --num-layers 12   # a comment
    "--vocab-size 128256"
    --hidden_size "768"
    --num-attention-heads 12
    --bf16
)
MORE="--micro-batch-size $GPUS \
      --global-batch-size $((WORLD * 2 + 1))"
torchrun --nproc_per_node $GPUS --nnodes $HOSTS --master_addr $HOST pretrain_gpt.py ${GPT_ARGS[@]} $MORE \
    --seq-length=1024 --lr 1e-4 2>&1 | tee log
