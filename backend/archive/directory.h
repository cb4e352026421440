/* SPDX-License-Identifier: MIT */
/*
 * An archive in a directory, as a file for each object. The directory is somebody's, shared perhaps, and its server may
 * not answer: each call is a lookup (backend/base/lookup.h), which waits for a limited time and holds up nobody; while
 * one hangs all others are told so at once. A file is written beside its place, synced, and renamed. Nothing below the
 * directory that is a link is followed.
 */
#ifndef KXFS_BACKEND_ARCHIVE_DIRECTORY_H
#define KXFS_BACKEND_ARCHIVE_DIRECTORY_H

#include "backend/archive/archive.h"

/*
 * DIR is absolute. WRITER is part of the names of files that are being written, so that each is left behind at most once;
 * NULL: nothing is put.
 */
void *archive_directory_new(struct loop *loop, const char *dir, const char *writer);

extern const struct archive_ops archive_directory_ops;

#endif
