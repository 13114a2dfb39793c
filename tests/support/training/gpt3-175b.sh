#!/bin/bash
# A GPT-3 of 175 billion parameters, with variables and strings of arguments.
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
NODES=${SLURM_NNODES:-128}
WORLD_SIZE=$(($GPUS_PER_NODE*$NODES))
MASTER_ADDR=${MASTER_ADDR:-"localhost"}
TP=8; PP=16
SEQ=2048
CHECKPOINTS=$1  # where they are kept

LAUNCHER="torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NODES \
  --master_addr $MASTER_ADDR"

MODEL="--num-layers 96 \
       --hidden-size 12288 --num-attention-heads 96 \
       --seq-length ${SEQ} --max-position-embeddings $SEQ"

TRAINING=" \
    --micro-batch-size 1 \
    --global-batch-size 1536 \
    --rampup-batch-size 16 16 5859375 \
    --train-iters 500000 --lr 6.0e-5 --min-lr 6.0e-6 --lr-decay-style cosine \
    --clip-grad 1.0 --fp16 \
    --num-layers-per-virtual-pipeline-stage 2 \
    --recompute-granularity selective --sequence-parallel"

if [ -n "$CHECKPOINTS" ]; then
  TRAINING+=" --save $CHECKPOINTS --load $CHECKPOINTS"
fi

$LAUNCHER pretrain_gpt.py $MODEL $TRAINING \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
    --data-path "$2" --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt --split 949,50,1 \
    --log-interval 100 --eval-iters 10 --vendor-option 3 \
    2>&1 | tee log.txt
