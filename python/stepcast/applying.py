"""A fusion plan on a real model: DistributedDataParallel sums gradients in the messages that `stepcast.fuse` found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .errors import InputError, StepcastError
from .results import Fusion

ONE_EACH_MB = 1e-6
"""A bucket of DistributedDataParallel that every gradient fills alone."""


def messages(plan: Fusion | Sequence[Sequence[str]], parameters: Iterable[str]) -> list[list[str]]:
    """The parameters of every message, in the order in which messages are sent.

    Names of gradients may have the prefixes of wrappers, `module.` or `_orig_mod.`. Parameters that the plan does not
    name make up a last message.

    >>> messages([["b.bias", "b.weight"], ["a.weight"]], ["a.weight", "a.bias", "b.weight", "b.bias"])
    [['b.bias', 'b.weight'], ['a.weight'], ['a.bias']]
    """
    known = {_plain(name): name for name in parameters}
    listed = plan.plan if isinstance(plan, Fusion) else [list(names) for names in plan]
    found: list[list[str]] = []
    for names in listed:
        message = []
        for name in names:
            own = known.pop(_plain(name), None)
            if own is None:
                reason = f'the plan sends a gradient "{name}", and the model has no such parameter, or it is sent twice'
                raise InputError(reason, "make the plan from a profile of this model: stepcast.profile", "plan")
            message.append(own)
        if message:
            found.append(message)
    return [*found, list(known.values())] if known else found


def _plain(name: str) -> str:
    for wrapper in ("module.", "_orig_mod."):
        name = name.removeprefix(wrapper)
    return name


def apply(plan: Fusion | Sequence[Sequence[str]], model: Any, **keywords: Any) -> Any:
    """`model` under DistributedDataParallel, with gradients summed in the messages of `plan`.

    `plan` is what `stepcast.fuse` found, or lists of names of parameters. The process group must be initialised.
    Other arguments are those of DistributedDataParallel.

        model = stepcast.apply(stepcast.fuse(profile.scenario(...)), model)
    """
    try:
        from torch.distributed import is_initialized
        from torch.nn.parallel import DistributedDataParallel
    except ImportError as error:
        raise StepcastError("PyTorch is not installed", "pip install torch") from error
    if not is_initialized():
        raise StepcastError("there is no process group", "call torch.distributed.init_process_group first")
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    groups = messages(plan, named)
    wrapped = DistributedDataParallel(model, **{"bucket_cap_mb": ONE_EACH_MB, **keywords})
    fused = Fused([[named[name] for name in group] for group in groups], keywords.get("process_group"))

    # PyTorch refuses annotations that are not its own.
    def hook(state, bucket):  # type: ignore[no-untyped-def]
        return fused.hook(bucket)

    wrapped.register_comm_hook(None, hook)
    return wrapped


class Message:
    """Gradients that are sent together. All ranks fill it in the same order."""

    def __init__(self, parameters: list[Any]) -> None:
        self.parameters = parameters
        self.gradients: dict[int, Any] = {}
        self.waiting: list[Bucket] = []

    def reset(self) -> None:
        self.gradients, self.waiting = {}, []


class Bucket:
    """A bucket of DistributedDataParallel, done when all messages with gradients of it have arrived."""

    def __init__(self, buffer: Any, messages: int, future: Any) -> None:
        self.buffer, self.messages, self.future = buffer, messages, future

    def arrived(self) -> None:
        self.messages -= 1
        if self.messages == 0:
            self.future.set_result(self.buffer)


class Fused:
    """A communication hook that sums gradients in given messages, whatever buckets they come in."""

    def __init__(self, groups: list[list[Any]], process_group: Any) -> None:
        self._group = process_group
        self._messages = [Message(group) for group in groups]
        self._of = {id(parameter): message for message in self._messages for parameter in message.parameters}

    def hook(self, bucket: Any) -> Any:
        """Keeps the gradients of a bucket until their messages are complete, and sends those."""
        import torch

        buffer = bucket.buffer()
        parts = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
        touched = {id(message): message for message in (self._of[id(parameter)] for parameter, _ in parts)}
        future: Any = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        waiting = Bucket(buffer, len(touched), future)
        for message in touched.values():
            message.waiting.append(waiting)
        for parameter, gradient in parts:
            self._of[id(parameter)].gradients[id(parameter)] = gradient
        for message in touched.values():
            if len(message.gradients) == len(message.parameters):
                self._send(message)
        return future

    def _send(self, message: Message) -> None:
        import torch.distributed as dist

        gradients = [message.gradients[id(parameter)] for parameter in message.parameters]
        waiting = message.waiting
        message.reset()
        flat = _flattened(gradients).div_(dist.get_world_size(self._group))
        work = dist.all_reduce(flat, group=self._group, async_op=True)

        def arrived(_: Any) -> None:
            start = 0
            for gradient in gradients:
                gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
                start += gradient.numel()
            for bucket in waiting:
                bucket.arrived()

        work.get_future().then(arrived)


def _flattened(gradients: list[Any]) -> Any:
    import torch

    return torch.cat([gradient.reshape(-1) for gradient in gradients])
