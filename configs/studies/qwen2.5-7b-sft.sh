#!/bin/bash
# Fine-tunes Qwen2.5 7B on long documents with ms-swift: DeepSpeed's ZeRO-3 on two nodes, each sequence over eight ranks.
# hdpsim import configs/studies/qwen2.5-7b-sft.sh --out from-sft.yaml
NNODES=2 \
NPROC_PER_NODE=8 \
swift sft \
    --model Qwen/Qwen2.5-7B-Instruct \
    --tuner_type full \
    --dataset documents.jsonl \
    --torch_dtype bfloat16 \
    --max_length 131072 \
    --packing true \
    --attn_impl flash_attn \
    --sequence_parallel_size 8 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 4 \
    --use_liger_kernel true \
    --deepspeed zero3 \
    --learning_rate 1e-5 \
    --save_steps 200 \
    --output_dir output
