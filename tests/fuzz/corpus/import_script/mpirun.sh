i=0; while (( i < 2 )); do A="$A --log-interval $i"; ((i++)); done
mpirun -np 16 -npernode 8 python pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 $A
