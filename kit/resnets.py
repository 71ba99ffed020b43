"""Residual networks in plain torch.nn."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Whether blocks are bottlenecks, and how many each stage has.
RESNET = {
    "resnet18": (False, (2, 2, 2, 2)),
    "resnet34": (False, (3, 4, 6, 3)),
    "resnet50": (True, (3, 4, 6, 3)),
    "resnet101": (True, (3, 4, 23, 3)),
    "resnet152": (True, (3, 8, 36, 3)),
}


class Residual(nn.Module):
    """Two 3×3 convolutions, or 1×1, 3×3 (with the stride) and 1×1, around a shortcut."""

    def __init__(self, channels: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        out = 4 * width if bottleneck else width
        plan = [(width, 1, 1), (width, 3, stride), (out, 1, 1)] if bottleneck else [(width, 3, stride), (out, 3, 1)]
        inner = channels
        for place, (to, kernel, step) in enumerate(plan, 1):
            setattr(self, f"conv{place}", nn.Conv2d(inner, to, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{place}", nn.BatchNorm2d(to))
            inner = to
        self.relu = nn.ReLU(inplace=True)
        self.depth = len(plan)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for place in range(1, self.depth + 1):
            y = getattr(self, f"bn{place}")(getattr(self, f"conv{place}")(y))
            if place < self.depth:
                y = self.relu(y)
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(y + shortcut)


class ResNet(nn.Module):
    """He et al. 2015, table 1, with the stride on the 3×3 convolution."""

    def __init__(self, bottleneck: bool, blocks: tuple[int, ...]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, repetitions in enumerate(blocks, 1):
            width = 32 << stage
            layers = []
            for place in range(repetitions):
                layers.append(Residual(channels, width, 2 if stage > 1 and place == 0 else 1, bottleneck))
                channels = 4 * width if bottleneck else width
            setattr(self, f"layer{stage}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


class SmallResidual(nn.Module):
    """For CIFAR: shortcuts drop every other point and pad channels with zeros (option A)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.stride, self.padding = stride, (width - channels) // 2

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        if self.stride != 1:
            pad = self.padding
            x = nn.functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, pad, pad))
        return self.relu(y + x)


class SmallResNet(nn.Module):
    """He et al. 2015, section 4.2: 6·depth + 2 layers for 32×32 images, 10 classes."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        channels = 16
        for stage, width in enumerate((16, 32, 64), 1):
            layers = []
            for place in range(depth):
                layers.append(SmallResidual(channels, width, 2 if stage > 1 and place == 0 else 1))
                channels = width
            setattr(self, f"layer{stage}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        for stage in range(1, 4):
            x = getattr(self, f"layer{stage}")(x)
        return self.linear(torch.flatten(self.avgpool(x), 1))
