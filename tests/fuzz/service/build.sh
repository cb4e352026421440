#!/bin/bash -eu
# SPDX-License-Identifier: MIT
# Build the fuzz targets as OSS-Fuzz requires. The service runs this file at the top of the tree,
# with its compiler and flags in CC, CFLAGS and LIB_FUZZING_ENGINE. It takes the targets from OUT,
# each with a zip file of seeds. Intermediate files are in WORK. contrib/packages.txt lists the
# required packages. Libraries are linked statically, because only the targets are copied to the
# fuzzing machines. tests/fuzz/build uses this file too.

build=$WORK/kxfs
options=(-Dfuzz=true "-Dfuzz_engine=$LIB_FUZZING_ENGINE" -Dprefer_static=true -Db_lundef=false -Db_pie=false)
if [[ -f $build/build.ninja ]]; then
	meson configure "$build" "${options[@]}"
else
	meson setup "$build" "${options[@]}"
fi
ninja -C "$build" fuzz
for source in tests/fuzz/fuzz-*.c; do
	name=$(basename "${source#tests/fuzz/fuzz-}" .c)
	cp "$build/tests/fuzz/fuzz-$name" "$OUT/"
	rm -f "$OUT/fuzz-${name}_seed_corpus.zip"
	seeds=$(mktemp -d "$WORK/seeds-XXXXXX")
	python3 tests/fuzz/corpus.py unpack "$name" "$seeds"
	python3 -m zipfile -c "$OUT/fuzz-${name}_seed_corpus.zip" "$seeds/"*
	rm -r "$seeds"
done
