/* SPDX-License-Identifier: MIT */
/*
 * The part of XML that servers of S3 answer with: elements, attributes (which nobody reads), text, and the entities
 * that XML itself has. A document type, and with it every entity that a sender could define, is none of it.
 */
#pragma once

#include "spec/base/base.h"

/*
 * An element ends. PATH is where it is ("/Error/Code"), VALUE the text in it behind its last child, decoded, no NUL in
 * it; it may have any other character. Both are borrowed.
 */
typedef void (*spec_xml_fn)(void *data, const char *path, const char *value);

/*
 * Read all elements of TEXT, of LEN bytes, as they end. False: it is no such XML; some elements may have been told by
 * then.
 */
bool spec_xml_read(const char *text, size_t len, spec_xml_fn fn, void *data);
