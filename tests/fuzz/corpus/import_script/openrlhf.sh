read -r -d '' training <<EOF
openrlhf.cli.train_dpo --model.model_name_or_path meta-llama/Meta-Llama-3-8B --data.max_len 8192 \
  --train.batch_size 256 --train.micro_batch_size 1 --ds.zero_stage 3 --ds.ring_attn_size 2
EOF
deepspeed --num_gpus 8 --module $training
