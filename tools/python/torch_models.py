"""Small models of PyTorch's own layers, for try_families.py, whose tensors exporters fold or copy: ones for norms without
scales, the products of weight_norm, slices of one weight."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from family_models import HEADS, HIDDEN, LAYERS, POSITIONS, VOCAB


class GroupNormModel(nn.Module):
    """Convolutions with group and instance norms, with and without parameters."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.norm = nn.GroupNorm(4, 16)
        self.mix = nn.Conv2d(16, HIDDEN, 1)
        self.plain_norm = nn.GroupNorm(8, HIDDEN, affine=False)
        self.head = nn.Linear(HIDDEN, 10)

    def forward(self, pixel_values):
        hidden = torch.relu(self.norm(self.patches(pixel_values)))
        return self.head(torch.relu(self.plain_norm(self.mix(hidden))).flatten(2).mean(2))


class WeightNormModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.up = weight_norm(nn.Linear(HIDDEN, 64))
        self.across = weight_norm(nn.Conv1d(64, HIDDEN, 3, padding=1))
        self.norm = nn.LayerNorm(HIDDEN, elementwise_affine=False)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, input_ids):
        hidden = nn.functional.gelu(self.up(self.embed(input_ids)))
        return self.head(self.norm(self.across(hidden.transpose(1, 2)).transpose(1, 2)))


class SlicedWeightModel(nn.Module):
    """One weight for queries, keys and values, sliced at each use; the table is also the head."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.projections = nn.Parameter(torch.zeros(3 * HIDDEN, HIDDEN))
        self.norm = nn.LayerNorm(HIDDEN)

    def forward(self, input_ids):
        hidden = self.embed(input_ids)
        query, key, value = (
            nn.functional.linear(hidden, self.projections[first:first + HIDDEN])
            .unflatten(-1, (HEADS, -1)).transpose(1, 2) for first in range(0, 3 * HIDDEN, HIDDEN))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        hidden = self.norm(hidden + mixed.transpose(1, 2).flatten(2))
        return nn.functional.linear(hidden, self.embed.weight)


class EncoderModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, input_ids):
        return self.head(self.encoder(self.embed(input_ids)))


class TransformerModel(nn.Module):
    """Encoder and decoder, with a causal mask of the decoder's length."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.transformer = nn.Transformer(HIDDEN, HEADS, LAYERS, LAYERS, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def place(self, ids):
        return self.embed(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))

    def forward(self, input_ids, decoder_input_ids):
        length = decoder_input_ids.shape[1]
        mask = torch.full((length, length), float("-inf"), dtype=self.head.weight.dtype).triu(1)
        return self.head(self.transformer(self.place(input_ids), self.place(decoder_input_ids), tgt_mask=mask))
