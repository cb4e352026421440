/* SPDX-License-Identifier: MIT */
/* The files of share/kinds/, in the order of preference; ends with an empty one. Private to spec/kinds. */
#pragma once

extern const struct spec_shipped_kind {
	const char *name, *text;
} spec_shipped_kinds[];
