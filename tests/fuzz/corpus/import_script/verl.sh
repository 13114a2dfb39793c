n=$(expr 64 / 8)
python3 -m verl.trainer.main_ppo data.max_prompt_length=512 +data.max_response_length=512 \
  actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.n=$n \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 \
  trainer.n_gpus_per_node=8 trainer.nnodes=8
