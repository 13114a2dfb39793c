ARGS="--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --num-experts 8 --moe-router-topk 2 --moe-layer-freq '([0]*1+[1]*3)' --swiglu --disable-bias-linear --position-embedding-type rope"
cmd="torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py $ARGS --save /ckpt/$(date +%F)"
echo ${cmd}
eval ${cmd}
