"""Models as they are written today, for the benchmarks: a LLaMA-style decoder, an LSTM language
model, a U-Net and a vision transformer. Attention is PyTorch's scaled_dot_product_attention."""

import torch
from torch import nn
from torch.nn import functional as F


def heads_of(x, count):
    """[batch, time, count * width] as [batch, count, time, width]."""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def rotate(x, cosine, sine):
    """Rotary positions: the halves of each head's width are turned against each other."""
    low, high = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-high, low), dim=-1) * sine


class LlamaBlock(nn.Module):
    """RMSNorm, grouped-query attention with rotary positions, RMSNorm, SwiGLU."""

    def __init__(self, width, heads, groups, inner):
        super().__init__()
        self.heads, self.groups = heads, groups
        size = width // heads
        self.norm1 = nn.RMSNorm(width, eps=1e-5)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * size, bias=False)
        self.value = nn.Linear(width, groups * size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width, eps=1e-5)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, cosine, sine):
        y = self.norm1(x)
        q = rotate(heads_of(self.query(y), self.heads), cosine, sine)
        k = rotate(heads_of(self.key(y), self.groups), cosine, sine)
        v = heads_of(self.value(y), self.groups)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, width, heads, groups, inner, positions, vocabulary):
        super().__init__()
        self.positions = positions
        self.wte = nn.Embedding(vocabulary, width)
        self.h = nn.ModuleList(LlamaBlock(width, heads, groups, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        angles = torch.outer(torch.arange(positions).float(),
                             10000.0 ** (-torch.arange(0, size, 2).float() / size))
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        x = self.wte(tokens)
        for block in self.h:
            x = block(x, self.cosine, self.sine)
        return self.head(self.norm(x))


class LstmDecoder(nn.Module):
    """An embedding, layers of nn.LSTM, a head of its own weights."""

    def __init__(self, layers, width, positions, vocabulary):
        super().__init__()
        self.positions = positions
        self.wte = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.lstm(self.wte(tokens))[0])


class ResidualBlock(nn.Module):
    """GroupNorm, SiLU and a 3x3 convolution, twice, around a skip connection."""

    def __init__(self, channels, width, groups=8):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, channels)
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1)
        self.norm2 = nn.GroupNorm(groups, width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.skip = nn.Identity() if channels == width else nn.Conv2d(channels, width, 1)

    def forward(self, x):
        y = self.conv1(F.silu(self.norm1(x)))
        y = self.conv2(F.silu(self.norm2(y)))
        return self.skip(x) + y


class Up(nn.Module):
    """Nearest upsampling and a 3x3 convolution."""

    def __init__(self, channels, width):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))


class UNet(nn.Module):
    """Three scales; the lower way up is a transposed convolution, the upper one nearest."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down1 = ResidualBlock(width, width)
        self.pool1 = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2 = ResidualBlock(width, 2 * width)
        self.pool2 = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.middle = ResidualBlock(2 * width, 4 * width)
        self.rise2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.up2 = ResidualBlock(4 * width, 2 * width)
        self.rise1 = Up(2 * width, width)
        self.up1 = ResidualBlock(2 * width, width)
        self.norm = nn.GroupNorm(8, width)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, image):
        a = self.down1(self.first(image))
        b = self.down2(self.pool1(a))
        c = self.middle(self.pool2(b))
        b = self.up2(torch.cat((self.rise2(c), b), dim=1))
        a = self.up1(torch.cat((self.rise1(b), a), dim=1))
        return self.last(F.silu(self.norm(a)))


class VitBlock(nn.Module):
    """Pre-norm encoder block: attention, then a GELU perceptron."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(mixed.transpose(1, 2).flatten(2))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Vit(nn.Module):
    """Patches by a convolution, a class token, learned positions."""

    def __init__(self, layers, width, heads, patch, side, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, 1 + (side // patch) ** 2, width))
        self.h = nn.ModuleList(VitBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.position
        for block in self.h:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
