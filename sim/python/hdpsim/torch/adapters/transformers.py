"""Models of Hugging Face `transformers`, from 4.48 on: attention by name.

    hdp = ht.HDP()
    model = AutoModelForCausalLM.from_pretrained(..., attn_implementation=hdp.attention)
    hdp.prepare(model)
    def forward(mb):
        mb = mb.batched()
        return ht.loss_sum(model(input_ids=mb.input_ids, position_ids=mb.position_ids, use_cache=False).logits, mb.labels)

Models whose layers see less than all tokens before (sliding windows), have soft caps or sinks are refused when they run.
"""

from __future__ import annotations

from typing import Any

from ..versions import Unsupported

NAME = "hdpsim"


def register(hdp: Any) -> str:
    """Makes `hdpsim` a name for attn_implementation, for this process, by this HDP. Returns the name."""
    functions = _registry()
    functions.register(NAME, attention_of(hdp)) if hasattr(functions, "register") else functions.update(
        {NAME: attention_of(hdp)})
    return NAME


def attention_of(hdp: Any) -> Any:
    """The function that `transformers` calls: query [1, heads, T, dim], key and value [1, kv_heads, T, dim]."""

    def attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None,
                  dropout: float = 0.0, **others: Any) -> tuple[Any, None]:
        _refuse(module, query, dropout, others)
        q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
        return hdp.attend(q, k, v, scale=scaling, layer=getattr(module, "layer_idx", None)).unsqueeze(0), None

    return attention


def _refuse(module: Any, query: Any, dropout: float, others: dict[str, Any]) -> None:
    if query.shape[0] != 1:
        raise ValueError(f"a batch of {query.shape[0]} rows: one row of all tokens is expected (MicroBatch.batched())")
    for name in ("sliding_window", "softcap", "s_aux"):
        if others.get(name) is not None:
            raise Unsupported(f"{type(module).__name__} wants {name}={others[name]!r}, which this attention does not do")
    if dropout > 0 and module.training:
        raise Unsupported("dropout of attention's weights is not done here: set attention_dropout to 0")
    if getattr(module, "is_causal", True) is False:
        raise Unsupported(f"{type(module).__name__} is not causal")


def _registry() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise Unsupported(f"HDP.attention is a name for transformers, which is not here: {error}") from error
    if hasattr(transformers, "AttentionInterface"):  # from 4.51 on documented
        return transformers.AttentionInterface
    try:
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS  # 4.48: a dictionary
    except ImportError as error:
        raise Unsupported(f"transformers {transformers.__version__} has no attention by name: 4.48 or later does") from error
    return ALL_ATTENTION_FUNCTIONS
