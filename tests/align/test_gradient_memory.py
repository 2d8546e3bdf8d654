import copy

import torch
from torch import nn

from bridgehead.align.gradient_memory import (
    LEAST_BYTES,
    GradientMemory,
    gradient_memory,
    large_empty,
    release_gradient_memory,
)

LARGE = (LEAST_BYTES // 4 // 64, 64)


def test_memory_is_used_again_only_when_the_tensor_and_all_its_views_are_gone():
    memory = GradientMemory()
    first = memory.empty(LARGE, torch.float32)
    place, view = first.data_ptr(), first[3:]
    del first
    assert memory.empty(LARGE, torch.float32).data_ptr() != place
    del view
    assert memory.empty(LARGE, torch.float32).data_ptr() == place


def test_any_number_of_tensors_may_be_held_at_a_time():
    memory = GradientMemory()
    held = [memory.empty(LARGE, torch.float32).fill_(number) for number in range(4)]
    assert [float(tensor.max()) for tensor in held] == [0.0, 1.0, 2.0, 3.0]


def test_another_shape_or_type_gets_its_own_memory():
    memory = GradientMemory()
    assert memory.empty(LARGE, torch.float64).dtype == torch.float64
    assert memory.empty((64, *LARGE), torch.float32).shape == (64, *LARGE)


def test_large_memory_starts_where_torch_would_have_it_start():
    assert large_empty(LARGE).data_ptr() % 64 == 0
    assert large_empty((3, 2), torch.float64).shape == (3, 2)


def test_memory_belongs_to_one_weight_and_a_copy_of_the_weight_has_none():
    weight = nn.Parameter(torch.zeros(2, 2))
    assert gradient_memory(weight) is gradient_memory(weight)
    assert gradient_memory(copy.deepcopy(weight)) is not gradient_memory(weight)
    assert gradient_memory(weight * 2) is not gradient_memory(weight)


def test_memory_is_given_back_on_request():
    layer = nn.Linear(2, 2)
    before = gradient_memory(layer.weight)
    release_gradient_memory(layer)
    assert gradient_memory(layer.weight) is not before
