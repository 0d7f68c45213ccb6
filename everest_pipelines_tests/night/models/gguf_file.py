"""MiniLM's weights as one GGUF file, the format that llama.cpp loads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

LAYERS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
OUTER = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}


def write_minilm(folder: Path, target: Path) -> None:
    """``folder``: a sentence-transformers folder of a BERT. Matrices become float16."""
    import gguf
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(str(target), "bert")
    writer.add_name("all-minilm")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    _vocabulary(writer, folder)
    for name, tensor in load_file(str(folder / "model.safetensors")).items():
        known = _renamed(name)
        if known is None:
            continue
        is_matrix = tensor.ndim == 2 and "norm" not in known and "types" not in known
        writer.add_tensor(known, tensor.astype(np.float16 if is_matrix else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _vocabulary(writer, folder: Path) -> None:
    """Word pieces as llama.cpp wants them: a word's beginning marked, ``##`` taken off."""
    import gguf

    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokens, kinds = [], []
    for word in words:
        special = word.startswith("[") and word.endswith("]") and len(word) > 2
        kinds.append(gguf.TokenType.CONTROL if special else gguf.TokenType.NORMAL)
        if special:
            tokens.append(word)
        else:
            tokens.append(word[2:] if word.startswith("##") else "\u2581" + word)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_types(kinds)
    writer.add_token_type_count(2)
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_mask_token_id(words.index("[MASK]"))


def _renamed(name: str) -> str | None:
    stem, _, part = name.rpartition(".")
    if stem in OUTER:
        return f"{OUTER[stem]}.{part}"
    if stem.startswith("encoder.layer."):
        number, _, inner = stem.removeprefix("encoder.layer.").partition(".")
        return f"blk.{number}.{LAYERS[inner]}.{part}"
    return None
