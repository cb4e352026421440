/* SPDX-License-Identifier: MIT */
/* The files that a connection's credentials are in. Waits for the disk: for the pool. */
#ifndef KXFS_BACKEND_CREDENTIAL_FILES_H
#define KXFS_BACKEND_CREDENTIAL_FILES_H

#include "spec/kubeconfig.h"

/* NULL: there is no such file. A certificate and its key are read together. */
struct credential_files {
	char *token; /* without white space around it; fit for a header line */
	char *cert_pem, *key_pem;
};

void credential_files_clear(struct credential_files *f);
/* Does C have any? */
bool credential_files_any(const struct spec_connection *c);
/*
 * Read all. A token that can't be read is no error where C has a fixed one. 0, or a negative errno with
 * *RET_TEXT, which names the file.
 */
int credential_files_read(const struct spec_connection *c, struct credential_files *ret,
			  char **ret_text);

#endif
