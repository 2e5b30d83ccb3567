"""Tensors in files: the same content is the same bytes, and nothing altered is taken for it."""

import pytest
import torch

from naysay import tensors
from naysay.errors import InputError

KIND = {"format": "test-1", "key": "about"}
READ = {**KIND, "what": "test", "way_out": "Make it again."}


def test_the_same_tensors_and_description_are_the_same_bytes(tmp_path):
    for at in range(8):  # safetensors puts the entries of its header in an order of its own, another each time
        content = {"b": torch.arange(6.0).view(2, 3), "a": torch.ones(2, dtype=torch.int32)}
        tensors.save(tmp_path / str(at), content, {"x": 1, "name": "Café"}, **KIND)
    assert len({(tmp_path / str(at)).read_bytes() for at in range(8)}) == 1
    read, about = tensors.load(tmp_path / "0", **READ)
    assert torch.equal(read["b"], torch.arange(6.0).view(2, 3))
    assert about == {"x": 1, "name": "Café"}


def test_an_altered_file_is_noticed_and_one_of_an_earlier_format_is_read(tmp_path):
    tensors.save(tmp_path / "file", {"a": torch.zeros(4)}, {}, **KIND)
    whole = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(whole[:-1] + b"\x01")
    with pytest.raises(InputError, match=r"was changed after it was saved.*Make it again"):
        tensors.load(tmp_path / "file", **READ)
    assert tensors.load(tmp_path / "file", **{**READ, "format": "test-2"}, before=["test-1"])[0]["a"][-1] != 0
    with pytest.raises(InputError, match=r"must be a test file \(test-2\); got format 'test-1'"):
        tensors.load(tmp_path / "file", **{**READ, "format": "test-2"})
