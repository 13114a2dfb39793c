#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
ARGS="--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000"
launch() { local LR=$1; srun python pretrain_gpt.py $ARGS --lr $LR; }
for lr in 1e-4; do launch $lr; done
