/* SPDX-License-Identifier: MIT */
/* The elements of a reply in XML, one after the other. Private to spec/s3/. */
#ifndef KXFS_SPEC_S3_XML_H
#define KXFS_SPEC_S3_XML_H

#include "spec/base/base.h"

/*
 * An element of TEXT has ended. PATH is its name behind those that it is in, "ListBucketResult/Contents/Key", without
 * prefixes of namespaces; VALUE is the text in it that is in no element within it.
 */
typedef void (*xml_fn)(void *data, const char *path, const char *value);

/*
 * Call FN for each element of TEXT. 0; -EINVAL: TEXT is no XML, has a document type (which could define entities
 * without end), or is deeper or longer in one element than any reply; what FN was told before is worth nothing then.
 */
int xml_read(const char *text, size_t len, xml_fn fn, void *data);

#endif
