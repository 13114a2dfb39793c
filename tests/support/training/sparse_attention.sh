#!/bin/bash
# Latent attention to keys that an indexer chooses, once for two layers; ranks of a context-parallel group gather them.
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --multi-latent-attention --q-lora-rank 256 --kv-lora-rank 128 --qk-head-dim 64 --qk-pos-emb-head-dim 32 \
    --v-head-dim 64 --qk-layernorm --experimental-attention-variant dsa --dsa-indexer-n-heads 8 \
    --dsa-indexer-head-dim 64 --dsa-indexer-topk 512 --dsa-indexer-topk-freq 2 --dsa-indexer-loss-coeff 0.001 \
    --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
    --untie-embeddings-and-output-weights --padded-vocab-size 32000 --ffn-hidden-size 2816 \
    --seq-length 16384 --max-position-embeddings 16384 --micro-batch-size 1 --global-batch-size 64 --bf16 \
    --context-parallel-size 4 --cp-comm-type all_gather --use-distributed-optimizer
