/* SPDX-License-Identifier: MIT */
/*
 * The form of what is split, a list of objects or the events of a watch: the places that matter (where objects
 * stand, what is dropped in them), and what a list says of itself. Private to split.c.
 */
#ifndef KXFS_SPEC_SPLIT_FORM_H
#define KXFS_SPEC_SPLIT_FORM_H

#include "spec/base.h"

enum split_place {
	SPLIT_OTHER,
	SPLIT_LIST,
	SPLIT_ITEMS,
	SPLIT_LIST_METADATA,
	SPLIT_EVENT,
	SPLIT_OBJECT,
	SPLIT_METADATA,
	SPLIT_SPEC,
	SPLIT_CONTAINERS,
	SPLIT_CONTAINER,
	SPLIT_DROPPED
};

/* What stands at PLACE under KEY, of N bytes; KEY is NULL: each item of a list there. */
enum split_place split_place_of(enum split_place place, const char *key, size_t n);

/*
 * From the metadata of a list: its version and the token of its next page, malloc'ed; what is not there stays as
 * it is. 0, -EINVAL, -ENOMEM.
 */
int split_list_metadata(const char *json, char **ret_version, char **ret_next);

#endif
