"""ONNX models for benchmarks, written without PyTorch or onnx: protobuf's wire format."""

import array
import os
import random
import struct
from pathlib import Path


class Model:
    """An ONNX graph of one input `x` with a symbolic batch. Its weights lie in a file beside it."""

    FLOAT, INT64 = 1, 7
    OPSET = 20
    WEIGHTS = "weights.bin"

    def __init__(self):
        self.nodes, self.tensors, self.largest = [], [], 0

    def end(self, inputs, result, shape):
        """`inputs` are types and shapes by name; the batch comes before each shape."""
        values = {result: (self.FLOAT, shape), **inputs}
        values = [self.fields((1, name), (2, self.type_of(*of))) for name, of in values.items()]
        graph = self.fields(*((1, node) for node in self.nodes), (2, "model"),
                            *((5, tensor) for tensor in self.tensors),
                            *((11, each) for each in values[1:]), (12, values[0]))
        self.bytes = self.fields((1, 9), (7, graph), (8, self.fields((1, ""), (2, self.OPSET))))

    def write(self, folder, deviation=0):
        """The path of the model. Weights are drawn from a normal distribution, or zeros without one."""
        path = Path(folder, "model.onnx")
        path.write_bytes(self.bytes)
        with open(Path(folder, self.WEIGHTS), "wb") as file:
            if deviation:
                # A period that no row of a weight has.
                draw = random.Random(0).gauss
                block = array.array("f", (draw(0, deviation) for _ in range(65537))).tobytes()
                for _ in range(0, self.largest, len(block)):
                    file.write(block)
            file.truncate(self.largest)
        return os.fspath(path)

    @staticmethod
    def varint(number):
        number &= (1 << 64) - 1
        out = bytearray()
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        return bytes(out + bytes([number]))

    @classmethod
    def fields(cls, *pairs):
        out = b""
        for number, value in pairs:
            if isinstance(value, int):
                out += cls.varint(number << 3) + cls.varint(value)
            else:
                value = value.encode() if isinstance(value, str) else value
                out += cls.varint(number << 3 | 2) + cls.varint(len(value)) + value
        return out

    def type_of(self, kind, sizes):
        sizes = [(2, "batch"), *((1, size) for size in sizes)]
        shape = self.fields(*((1, self.fields(size)) for size in sizes))
        return self.fields((1, self.fields((1, kind), (2, shape))))

    def constant(self, name, shape, kind, content):
        self.node("Constant", name,
                  value=self.fields(*((1, size) for size in shape), (2, kind), (9, content)))

    def weight(self, name, *shape):
        """All weights have the same content: that of the begin of one file."""
        size = 4
        for each in shape:
            size *= each
        self.largest = max(self.largest, size)
        place = {"location": self.WEIGHTS, "offset": "0", "length": str(size)}
        self.tensors.append(self.fields(
            *((1, each) for each in shape), (2, self.FLOAT), (8, name),
            *((13, self.fields((1, key), (2, text))) for key, text in place.items()), (14, 1)))
        return name

    def node(self, kind, out, *inputs, more=(), **attributes):
        """The name of the first output; `more` are those of others."""
        texts = []
        for name, value in attributes.items():
            # Of an integer, a tensor, integers.
            values = ([(3, value), (20, 2)] if isinstance(value, int) else
                      [(5, value), (20, 4)] if isinstance(value, bytes) else
                      [*((8, each) for each in value), (20, 7)])
            texts.append((5, self.fields((1, name), *values)))
        self.nodes.append(self.fields(*((1, each) for each in inputs), (2, out), *((2, each) for each in more),
                                      (3, out), (4, kind), *texts))
        return out

    def convolution(self, name, value, channels, width, size, stride=1, bias=True):
        """Without an edge: as large as `value`, or a `stride`-th of it."""
        weights = [self.weight(name + ".weight", width, channels, size, size)]
        weights += [self.weight(name + ".bias", width)] if bias else []
        return self.node("Conv", name, value, *weights, kernel_shape=[size] * 2,
                         strides=[stride] * 2, pads=[size // 2] * 4)


class Decoder(Model):
    """Pre-norm layers with a GELU perceptron, no embedding and no head, so that all stages are
    alike."""

    # By name, beside "x": type, and sizes behind that of the batch.
    inputs = {}

    def __init__(self, layers, width, heads, positions):
        super().__init__()
        self.width, self.heads = width, heads
        self.begin(positions)
        value = self.layers("x", layers)
        rows = (self.FLOAT, (positions, width))
        self.end({"x": rows, **self.inputs}, value, (positions, width))

    def layers(self, value, number):
        for layer in range(number):
            value = self.layer(f"h.{layer}.", value)
        return value

    def begin(self, positions):
        """What all layers read."""
        width, heads = self.width, self.heads
        self.constant("split", [4], self.INT64, struct.pack("<4q", 0, positions, heads, width // heads))
        self.constant("merge", [3], self.INT64, struct.pack("<3q", 0, positions, width))
        self.constant("scale", [], self.FLOAT, struct.pack("<f", (width // heads) ** -0.5))

    def linear(self, name, value, inputs, outputs):
        product = self.node("MatMul", name + ".product", value, self.weight(name + ".weight", inputs, outputs))
        return self.node("Add", name, product, self.weight(name + ".bias", outputs))

    def norm(self, name, value):
        return self.node("LayerNormalization", name, value, self.weight(name + ".weight", self.width),
                         self.weight(name + ".bias", self.width), axis=-1)

    def layer(self, name, value):
        def heads(part, order):
            rows = self.node("Reshape", name + part + ".rows",
                             self.linear(name + part, norm, width, width), "split")
            return self.node("Transpose", name + part + ".heads", rows, perm=order)
        width = self.width
        norm = self.norm(name + "ln1", value)
        q, k, v = heads("q", [0, 2, 1, 3]), heads("k", [0, 2, 3, 1]), heads("v", [0, 2, 1, 3])
        scores = self.node("Mul", name + "scaled", self.node("MatMul", name + "scores", q, k), "scale")
        mixed = self.node("MatMul", name + "mixed", self.node("Softmax", name + "softmax", scores, axis=-1), v)
        merged = self.node("Reshape", name + "merged",
                           self.node("Transpose", name + "back", mixed, perm=[0, 2, 1, 3]), "merge")
        value = self.node("Add", name + "attended", value, self.linear(name + "proj", merged, width, width))
        hidden = self.linear(name + "fc1", self.norm(name + "ln2", value), width, 4 * width)
        hidden = self.node("Gelu", name + "gelu", hidden)
        return self.node("Add", name + "out", value, self.linear(name + "fc2", hidden, 4 * width, width))


class Gpt(Decoder):
    """GPT-2's shape: learned positions, one table for tokens and head."""

    def __init__(self, layers, width, heads, positions, vocabulary):
        Model.__init__(self)
        self.width, self.heads = width, heads
        self.begin(positions)
        table = self.weight("wte.weight", vocabulary, width)
        value = self.node("Add", "embedded", self.node("Gather", "wte", table, "x"),
                          self.weight("wpe.weight", positions, width))
        value = self.norm("ln_f", self.layers(value, layers))
        head = self.node("Transpose", "head.weight", table, perm=[1, 0])
        self.end({"x": (self.INT64, (positions,))}, self.node("MatMul", "logits", value, head),
                 (positions, vocabulary))


class Vgg19(Model):
    """Convolutions of VGG19 (Simonyan and Zisserman, arXiv 1409.1556) for 32x32 images, and one
    product behind them."""

    WIDTHS = [64] * 2 + [0] + [128] * 2 + [0] + ([256] * 4 + [0]) + ([512] * 4 + [0]) * 2

    def __init__(self, classes=10):
        super().__init__()
        value, channels = "x", 3
        for place, width in enumerate(self.WIDTHS):
            if width == 0:
                value = self.node("MaxPool", f"pool.{place}", value, kernel_shape=[2, 2], strides=[2, 2])
                continue
            value = self.convolution(f"conv.{place}", value, channels, width, 3)
            value, channels = self.node("Relu", f"relu.{place}", value), width
        value = self.node("Flatten", "flat", value, axis=1)
        value = self.node("Gemm", "logits", value, self.weight("head.weight", classes, channels),
                          self.weight("head.bias", classes), transB=1)
        self.end({"x": (self.FLOAT, (3, 32, 32))}, value, (classes,))


class ResNet50(Model):
    """K. He et al., "Deep Residual Learning for Image Recognition" (2016), for 224x224 images;
    batch normalization of each micro-batch."""

    BLOCKS = [(64, 3), (128, 4), (256, 6), (512, 3)]

    def __init__(self, classes=1000):
        super().__init__()
        value = self.normalized("conv1", "x", 3, 64, 7, stride=2)
        value = self.node("MaxPool", "pool", self.node("Relu", "relu1", value), kernel_shape=[3, 3],
                          strides=[2, 2], pads=[1, 1, 1, 1])
        channels = 64
        for scale, (width, number) in enumerate(self.BLOCKS):
            for block in range(number):
                stride = 2 if scale > 0 and block == 0 else 1
                value = self.block(f"layer{scale + 1}.{block}.", value, channels, width, stride)
                channels = 4 * width
        value = self.node("Flatten", "flat", self.node("GlobalAveragePool", "mean", value))
        value = self.node("Gemm", "logits", value, self.weight("fc.weight", classes, channels),
                          self.weight("fc.bias", classes), transB=1)
        self.end({"x": (self.FLOAT, (3, 224, 224))}, value, (classes,))

    def normalized(self, name, value, channels, width, size, stride=1):
        value = self.convolution(name, value, channels, width, size, stride, bias=False)
        of = [self.weight(f"{name}.bn.{part}", width) for part in ("scale", "bias", "mean", "var")]
        return self.node("BatchNormalization", name + ".bn", value, *of, training_mode=1,
                         more=[name + ".bn.new_mean", name + ".bn.new_var"])

    def block(self, name, value, channels, width, stride):
        inner = self.node("Relu", name + "relu1",
                          self.normalized(name + "conv1", value, channels, width, 1))
        inner = self.node("Relu", name + "relu2",
                          self.normalized(name + "conv2", inner, width, width, 3, stride))
        inner = self.normalized(name + "conv3", inner, width, 4 * width, 1)
        if channels != 4 * width or stride > 1:
            value = self.normalized(name + "downsample", value, channels, 4 * width, 1, stride)
        return self.node("Relu", name + "out", self.node("Add", name + "sum", inner, value))


class Unet(Model):
    """O. Ronneberger et al., "U-Net" (2015), with four scales, convolutions that keep the size of an
    image, and skips from each scale on the way down to the same on the way up."""

    def __init__(self, width=32, size=64, scales=4):
        super().__init__()
        value, channels, skips = "x", 3, []
        for scale in range(scales):
            value, channels = self.two(f"down{scale}.", value, channels, width << scale), width << scale
            if scale + 1 < scales:
                skips.append((value, channels))
                value = self.node("MaxPool", f"pool{scale}", value, kernel_shape=[2, 2], strides=[2, 2])
        for scale, (skip, skipped) in reversed(list(enumerate(skips))):
            risen = self.node("ConvTranspose", f"rise{scale}", value,
                              self.weight(f"rise{scale}.weight", channels, skipped, 2, 2),
                              self.weight(f"rise{scale}.bias", skipped), kernel_shape=[2, 2], strides=[2, 2])
            both = self.node("Concat", f"both{scale}", skip, risen, axis=1)
            value, channels = self.two(f"up{scale}.", both, 2 * skipped, skipped), skipped
        value = self.convolution("last", value, channels, 3, 1)
        self.end({"x": (self.FLOAT, (3, size, size))}, value, (3, size, size))

    def two(self, name, value, channels, width):
        for number in (1, 2):
            value = self.node("Relu", f"{name}relu{number}",
                              self.convolution(f"{name}conv{number}", value, channels, width, 3))
            channels = width
        return value


# Those of the benchmarks. tools/reference/export_models.py exports most of them under these names;
# decoders have no mask here, and three products where PyTorch's have one of their widths together.
MODELS = {"gpt-s": lambda: Gpt(4, 256, 4, 128, 8192), "gpt2": lambda: Gpt(12, 768, 12, 1024, 50257),
          "resnet50": ResNet50, "unet": Unet, "vgg19": Vgg19}
