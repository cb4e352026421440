# SPDX-License-Identifier: MIT
"""The list of sentences that users read is up to date, so that review sees each new one."""

import messages


def test_list_is_up_to_date():
    assert messages.messages() == messages.LIST.read_text(), "run tests/lint/messages.py --write, and read the difference"


def test_literals():
    found = list(messages.literals('#include "a b"\nf("one " "two" /* c "no" */\n  "three", "x " PRIu64 " y", \'"\');\n'))
    assert found == ["one twothree", "x <PRIu64> y"]


def test_no_words_that_need_a_second_reading():
    """Phrases that plain English replaces; see docs/rules.md, "Style"."""
    phrases = ("by itself", "at one look", "put out", "who runs", "mended", "listing anew",
               "stands in line", "tells of", "told of")
    found = [line for line in messages.messages().splitlines() for phrase in phrases if phrase in line]
    assert not found
