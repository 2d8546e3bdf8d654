import copy
import inspect

import pytest

from bridgehead import errors

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if found.__module__ == "bridgehead.errors"]


def made(error_class: type[errors.BridgeheadError]) -> errors.BridgeheadError:
    # Only a missing extra is made from parts; all others from their message.
    return error_class("rdkit", "molecules") if error_class is errors.MissingExtraError else error_class("what came")


@pytest.mark.parametrize("error_class", CLASSES)
def test_every_error_is_one_of_ours_and_a_built_in_one(error_class):
    assert issubclass(error_class, errors.BridgeheadError)
    built_in = {base for base in error_class.__mro__ if base.__module__ == "builtins"} - {Exception, BaseException}
    assert built_in - {object} or error_class is errors.BridgeheadError
    assert error_class.__doc__


@pytest.mark.parametrize("error_class", CLASSES)
def test_every_error_comes_whole_from_a_worker_process(error_class):
    error = made(error_class)
    # copy uses the protocol by which errors travel between processes.
    again = copy.copy(error)
    assert type(again) is error_class
    assert str(again) == str(error)


def test_a_sentence_is_shown_as_it_is():
    assert str(errors.ColumnError("no column 'x'; there are 'a', 'b'")) == "no column 'x'; there are 'a', 'b'"
    assert str(errors.ColumnError()) == ""


def test_a_missing_extra_gives_the_install_line():
    with pytest.raises(ImportError, match=r"pip install 'bridgehead\[molecules\]'"):
        raise errors.MissingExtraError("rdkit", "molecules")
