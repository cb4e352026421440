#!/bin/bash -eu
# SPDX-License-Identifier: MIT
# Build the fuzz targets as OSS-Fuzz wants them. A service runs this file with its compiler and flags in CC, CFLAGS and
# LIB_FUZZING_ENGINE, and takes the targets with a zip of seeds each out of OUT; what is made on the way is in WORK.
# It is run in the top of the tree; contrib/packages.txt names what a build needs. The targets bring their libraries along,
# since only they are copied to the machines that search. tests/fuzz/build builds by this file too.

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
