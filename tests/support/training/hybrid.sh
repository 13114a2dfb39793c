#!/bin/bash
# A hybrid of Mamba-2, attention, MLPs and experts, whose letters end chunks of two stages.
LETTERS='MEM*|EMEM|*EME|ME-M'
torchrun --nproc_per_node 8 --nnodes 2 pretrain_hybrid.py \
    --hybrid-layer-pattern "$LETTERS" --hidden-size 2688 --num-attention-heads 32 --kv-channels 128 \
    --group-query-attention --num-query-groups 2 --ffn-hidden-size 1856 --squared-relu \
    --mamba-num-heads 64 --mamba-head-dim 64 --num-experts 16 --moe-router-topk 6 \
    --moe-shared-expert-intermediate-size 3712 --disable-bias-linear --normalization RMSNorm \
    --position-embedding-type none --untie-embeddings-and-output-weights --padded-vocab-size 131072 \
    --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 64 --bf16 \
    --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer
