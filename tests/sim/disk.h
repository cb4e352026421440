/* SPDX-License-Identifier: MIT */
/* The disk on which the state directory is, as the world sees it; kxfs sees backend/base/disk.h. */
#pragma once

#include "spec/base/base.h"

/* The archive is a disk of its own, which fails when the other one does. */
#define SIM_ARCHIVE_DIR "/archive"

/* Two that are empty, mounted on /state and SIM_ARCHIVE_DIR. */
void sim_disk_make(void);
/* Its process is gone, and with it all descriptors. What it has called for is there. */
void sim_disk_kill(void);
/*
 * The machine has gone down, too. Of each file what was synced is sure; of what was written since each block is there
 * or not. Of the names in each directory those of its last sync are sure; of the changes since so many of the first are
 * there as is drawn.
 */
void sim_disk_power_cut(void);
struct sim_process;
/* SOCKET listens at NAME of the directory AT. 0 or a negative errno, of which none is a fault of the disk. */
int sim_disk_bind(int at, const char *name, void *socket);
/* *RET is NULL where NAME is no socket. */
int sim_disk_find_socket(int at, const char *name, void **ret);
/* P has FD as well, as the descriptor that is returned. */
int sim_disk_give(int fd, struct sim_process *p);
/* How many descriptors kxfs has. */
size_t sim_disk_n_open(void);
/* All descriptors of P are closed; NULL: of kxfs. */
void sim_disk_close_of(const struct sim_process *p);
/* From now on none of its calls fails or takes long. */
void sim_disk_mend(void);
/* The bytes of the file PATH as they are; NULL: it is not there. */
const unsigned char *sim_disk_look(const char *path, size_t *ret_n);
/* The I-th name of the directory PATH; NULL: there are not so many. */
const char *sim_disk_name(const char *path, size_t i);
/* All files below PATH, with their bytes, as a text, malloc'ed; NULL: it is not there. */
char *sim_disk_text(const char *path);
