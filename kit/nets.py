"""Networks in plain torch.nn, with the names that Stepcast's zoo has for them and for their layers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from resnets import RESNET, ResNet, SmallResNet

VGG = {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
    "vgg19": (2, 2, 4, 4, 4),
}
# Expansion, output channels, repetitions and first stride of each stage: Sandler 2018, table 2.
MOBILENET_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class Classifier(nn.Module):
    """Features, pooling to a fixed size, fully connected layers."""

    def __init__(self, features: nn.Module, pool: int, classifier: nn.Module) -> None:
        super().__init__()
        self.features, self.avgpool, self.classifier = features, nn.AdaptiveAvgPool2d(pool), classifier

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def alexnet() -> nn.Module:
    """Krizhevsky 2014, one column."""
    layers: list[nn.Module] = []
    for inp, out, kernel, stride, padding, pool in (
        (3, 64, 11, 4, 2, True),
        (64, 192, 5, 1, 2, True),
        (192, 384, 3, 1, 1, False),
        (384, 256, 3, 1, 1, False),
        (256, 256, 3, 1, 1, True),
    ):
        layers += [nn.Conv2d(inp, out, kernel, stride, padding), nn.ReLU(inplace=True)]
        if pool:
            layers.append(nn.MaxPool2d(3, 2))
    head = nn.Sequential(
        nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
        nn.Linear(4096, 1000),
    )  # fmt: skip
    return Classifier(nn.Sequential(*layers), 6, head)


def vgg(blocks: tuple[int, ...]) -> nn.Module:
    """Simonyan and Zisserman 2015, table 1."""
    layers: list[nn.Module] = []
    channels = 3
    for repetitions, width in zip(blocks, (64, 128, 256, 512, 512), strict=True):
        for _ in range(repetitions):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2, 2))
    head = nn.Sequential(
        nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout(),
        nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(),
        nn.Linear(4096, 1000),
    )  # fmt: skip
    return Classifier(nn.Sequential(*layers), 7, head)


class DenseLayer(nn.Sequential):
    """Takes all that came before it in its block, joined."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__(
            OrderedDict(
                norm1=nn.BatchNorm2d(channels),
                relu1=nn.ReLU(inplace=True),
                conv1=nn.Conv2d(channels, 4 * growth, 1, bias=False),
                norm2=nn.BatchNorm2d(4 * growth),
                relu2=nn.ReLU(inplace=True),
                conv2=nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
            )
        )


class DenseBlock(nn.Module):
    """Every layer adds a few channels, which all later ones see."""

    def __init__(self, channels: int, growth: int, repetitions: int) -> None:
        super().__init__()
        for place in range(repetitions):
            self.add_module(f"denselayer{place + 1}", DenseLayer(channels + place * growth, growth))

    def forward(self, x: Tensor) -> Tensor:
        seen = [x]
        for layer in self.children():
            seen.append(layer(torch.cat(seen, 1)))
        return torch.cat(seen, 1)


class DenseNet(nn.Module):
    """Huang et al. 2016, table 1."""

    def __init__(self, blocks: tuple[int, ...], growth: int = 32) -> None:
        super().__init__()
        channels = 2 * growth
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(3, channels, 7, 2, 3, bias=False),
            norm0=nn.BatchNorm2d(channels),
            relu0=nn.ReLU(inplace=True),
            pool0=nn.MaxPool2d(3, 2, 1),
        )
        for stage, repetitions in enumerate(blocks, 1):
            parts[f"denseblock{stage}"] = DenseBlock(channels, growth, repetitions)
            channels += repetitions * growth
            if stage < len(blocks):
                parts[f"transition{stage}"] = nn.Sequential(
                    OrderedDict(
                        norm=nn.BatchNorm2d(channels),
                        relu=nn.ReLU(inplace=True),
                        conv=nn.Conv2d(channels, channels // 2, 1, bias=False),
                        pool=nn.AvgPool2d(2, 2),
                    )
                )
                channels //= 2
        parts["norm5"] = nn.BatchNorm2d(channels)
        self.features = nn.Sequential(parts)
        self.classifier = nn.Linear(channels, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.relu(self.features(x), inplace=True)
        return self.classifier(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class Inverted(nn.Module):
    """Widen, convolve each channel by itself, narrow."""

    def __init__(self, channels: int, expansion: int, out: int, stride: int) -> None:
        super().__init__()
        hidden = channels * expansion
        layers = [unit(channels, hidden, 1)] if expansion > 1 else []
        layers += [unit(hidden, hidden, 3, stride, hidden), nn.Conv2d(hidden, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.conv = nn.Sequential(*layers)
        self.is_residual = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.is_residual else self.conv(x)


def unit(channels: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    conv = nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU6(inplace=True))


def mobilenet_v2() -> nn.Module:
    """Sandler et al. 2018."""
    layers, channels = [unit(3, 32, 3, 2)], 32
    for expansion, out, repetitions, first in MOBILENET_STAGES:
        for place in range(repetitions):
            layers.append(Inverted(channels, expansion, out, first if place == 0 else 1))
            channels = out
    layers.append(unit(channels, 1280, 1))
    return Classifier(nn.Sequential(*layers), 1, nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000)))


# Name, size of its input, number of classes, how it is made.
BUILT_IN: dict[str, tuple[tuple[int, ...], int, Callable[[], nn.Module]]] = {
    "alexnet": ((3, 224, 224), 1000, alexnet),
    "densenet121": ((3, 224, 224), 1000, lambda: DenseNet((6, 12, 24, 16))),
    "mobilenet-v2": ((3, 224, 224), 1000, mobilenet_v2),
    "resnet32": ((3, 32, 32), 10, lambda: SmallResNet(5)),
    "resnet56": ((3, 32, 32), 10, lambda: SmallResNet(9)),
}
BUILT_IN |= {name: ((3, 224, 224), 1000, partial(vgg, blocks)) for name, blocks in VGG.items()}
BUILT_IN |= {name: ((3, 224, 224), 1000, partial(ResNet, *layout)) for name, layout in RESNET.items()}
