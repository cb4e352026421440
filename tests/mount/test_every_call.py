# SPDX-License-Identifier: MIT
"""Each call on each class of path of the state directory hangs or fails, one after the other: unaffected work
continues, refused work reports that, and when the disk recovers everything is as before (every_call.py).

    KXFS_EVERY_CALL=all pytest test_every_call.py           each with each error, twenty minutes
    KXFS_EVERY_CALL='mkdir /jobs' pytest test_every_call.py those whose text has this
    pytest test_every_call.py --seed N                      other errors than those of every run
"""

import pytest
from every_call import PARTS, Day, Mounts, each


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_each(make_kx, request, part):
    each(Mounts(lambda: make_kx(start=False), Day), part, request.config.getoption("--seed"))
