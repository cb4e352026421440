/* SPDX-License-Identifier: MIT */
/*
 * The simulator's control of the simulated disk, on which the state directory is. kxfs calls
 * backend/base/disk.h.
 */
#pragma once

#include "spec/base/base.h"

/* The archive is on a second disk, which has its own faults. */
#define SIM_ARCHIVE_DIR "/archive"

/* Mount two empty disks on /state and SIM_ARCHIVE_DIR. */
void sim_disk_make(void);
/* kxfs was killed: close its descriptors. Calls that it has made remain in effect. */
void sim_disk_kill(void);
/*
 * The machine has lost power. Of each file the synced contents remain; of later writes each block
 * is kept or lost at random. Of each directory the names at its last sync remain; of later changes
 * a random number is kept, the oldest first.
 */
void sim_disk_power_cut(void);
struct sim_process;
/*
 * Bind SOCKET to NAME in the directory AT. Return 0 or a negative errno; disk faults do not affect
 * this call.
 */
int sim_disk_bind(int at, const char *name, void *socket);
/* *RET is NULL if NAME is not a socket. */
int sim_disk_find_socket(int at, const char *name, void **ret);
/* Duplicate FD for P; return the new descriptor. */
int sim_disk_give(int fd, struct sim_process *p);
/* Return the number of descriptors that kxfs has open. */
size_t sim_disk_n_open(void);
/* Close all descriptors of P, or kxfs's if P is NULL. */
void sim_disk_close_of(const struct sim_process *p);
/* Damage the file PATH: change BITS of the N bytes from AT on; or cut the file. */
void sim_disk_flip(const char *path, size_t at, size_t n, unsigned bits);
void sim_disk_cut(const char *path, size_t size);
/* End all faults: calls neither fail nor hang from now on. */
void sim_disk_mend(void);
/* Return the current bytes of the file PATH, or NULL if there is no such file. */
const unsigned char *sim_disk_look(const char *path, size_t *ret_n);
/* Return the I-th name in the directory PATH, or NULL. */
const char *sim_disk_name(const char *path, size_t i);
/*
 * Return all files below PATH with their bytes as a text, malloc'ed, or NULL if PATH does not
 * exist.
 */
char *sim_disk_text(const char *path);
