# SPDX-License-Identifier: MIT
# README.md as it is installed: without what needs the sources, and with manuals and files where they are then.
/^On Debian 12, the first command/,/^$/d
/^    contrib\/quickstart$/,/^$/d
/^export PATH=.*build-quickstart/d
s|`(man )?docs/([a-z-]+)\.[0-9]`|`man \2`|g
s,\[([^]]*)\]\((CONTRIBUTING\.md|docs/(architecture|first-change)\.md|tests/[^)]*)\),\1 of the sources,g
