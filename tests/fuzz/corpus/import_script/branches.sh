TP=1
if nvidia-smi > /dev/null; then TP=2; else TP=2; fi
[ -f env.sh ] && . env.sh
export "PP=2"
case $TP in 1|2) CP=1 ;; *) exit 1 ;; esac
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --context-parallel-size $CP
