"""Plans of hdpsim in a PyTorch training loop: the plan that was simulated drives the user's own model and loader.

    import torch.distributed as dist, hdpsim, hdpsim.torch as ht

    dist.init_process_group("nccl")
    hdp = ht.HDP(exchange="ring", attention="auto")
    hdp.prepare(model)                              # its layers call hdp.attend(q, k, v), or see adapters
    def forward(mb):
        return ht.loss_sum(model(mb.input_ids, mb.position_ids), mb.labels)
    for batch in ht.PlannedLoader(dataset, planner, hdp, tokens_per_step=4 << 20):
        loss = hdp.run(batch, forward)
        optimizer.step(); optimizer.zero_grad()

PyTorch 1.13 and later; `versions` has what differs. Kernels of GPUs and FSDP2 are written after their documentation and
have not been run by the project's tests, which run on CPUs.
"""

from .batch import IGNORED, Batch, MicroBatch, loss_sum, make_batch
from .data import PlannedLoader
from .run import HDP, Refused
from .trace import profile
from .versions import Unsupported
from .watch import Stuck

__all__ = ["HDP", "IGNORED", "Batch", "MicroBatch", "PlannedLoader", "Refused", "Stuck", "Unsupported", "loss_sum",
           "make_batch", "profile"]
