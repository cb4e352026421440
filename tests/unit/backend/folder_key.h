/* SPDX-License-Identifier: MIT */
/* Finds the folder in STATE/output that contains a job's files, by the job's id. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "backend/base/file.h"
#include "spec/base/mem.h"

/* True if NAME in the folder KEY of STATE contains TEXT, or if FIRST, starts with TEXT. */
static inline bool folder_key_has(const char *state, const char *key, const char *name,
				  const char *text, bool first)
{
	cleanup_free char *path = file_path(state, key, name), *all = NULL;
	const char *at;
	size_t len;

	if (file_read(path, 64u << 20, &all, &len))
		return false;
	at = strstr(all, text);
	return at && (!first || at == all);
}

/* True if the record KEY of STATE contains TEXT. */
static inline bool folder_key_has_record(const char *state, const char *key, const char *text)
{
	cleanup_free char *name = text_print("../../jobs/%s", key);

	return folder_key_has(state, key, name, text, false);
}

/*
 * Return the key of the job with this ID, or "none" if it has no folder. The result is valid for
 * the next three calls.
 */
static inline const char *folder_key(const char *state, const char *id)
{
	static char keys[4][256];
	static unsigned n;
	cleanup_free char *path = text_print("%s/output", state);
	cleanup_free char *json = text_print("\"id\":\"%s\"", id), *line = text_print("%s\n", id);
	char *key = keys[n++ % 4];
	cleanup_dir DIR *dir = opendir(path);
	struct dirent *e;

	strcpy(key, "none");
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' &&
		    (folder_key_has_record(state, e->d_name, json) ||
		     folder_key_has(state, e->d_name, "job.json", json, false) ||
		     folder_key_has(state, e->d_name, "submission", line, true)))
			snprintf(key, sizeof(keys[0]), "%s", e->d_name);
	return key;
}
