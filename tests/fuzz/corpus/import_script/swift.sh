NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B --tuner_type lora --lora_rank 8 --max_length 4096 --packing true \
  --tensor_model_parallel_size 2 --sequence_parallel true --global_batch_size 64 --recompute_granularity none
