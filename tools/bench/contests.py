"""The models that train beside PyTorch, and how."""

from typing import NamedTuple


class Contest(NamedTuple):
    input: str
    batch: int
    # Steps of a round; a program takes one more to warm up.
    steps: int
    optimizer: str = "adamw"
    loss: str = "softmax-cross-entropy"

    def compile_options(self):
        return ["--micro-batch-size", self.batch, "--optimizer", self.optimizer, "--loss", self.loss]

    def data(self, folder):
        """What torch_peer.py wrote there."""
        return [f"{each}={folder}/{each}.npy" for each in (self.input, "targets")]


# By their names in tools/reference/export_models.py.
CONTESTS = {
    "gpt-s": Contest("tokens", 8, 5),
    "vgg19": Contest("image", 32, 3, optimizer="sgd,momentum=0.9"),
    "llama-s": Contest("tokens", 8, 5),
    "lstm": Contest("tokens", 16, 5),
    "unet": Contest("image", 8, 5, loss="mse"),
    "vit": Contest("image", 32, 3),
}
