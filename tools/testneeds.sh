#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sees to what the tests need on top of what the build does. What a story needs besides is named: testneeds.sh postgresql
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/sbin:/sbin"
source tools/packages.sh

missing=()
command -v softhsm2-util >/dev/null || missing+=(softhsm2) # a PKCS #11 token in software, for internal/certificates/signer
# Reads the units that internal/node/render writes, and is the first process of hosts of test/host.
command -v systemd-analyze >/dev/null && [[ -x /lib/systemd/systemd ]] || missing+=(systemd)
command -v aws >/dev/null || missing+=(awscli) # people's tools for IAM, in test/stories
command -v musl-gcc >/dev/null || missing+=(musl-tools) # the resolver of Alpine's images, in test/stories
# File systems whose files share their content, for internal/storage/filestore, internal/platform/removetree and test/stories.
command -v mkfs.xfs >/dev/null || missing+=(xfsprogs)
command -v mkfs.btrfs >/dev/null || missing+=(btrfs-progs)
# Machines run it for a story. Where people work it is not installed for them, as it would begin to serve: the story says that it was skipped.
[[ -z ${CI-} ]] || command -v sshd >/dev/null || missing+=(openssh-server)
# The pods of a story run it.
[[ ${1-} != postgresql ]] || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
((${#missing[@]})) || exit 0
if may_install; then
	install_packages "${missing[@]}"
else
	printf "this system lacks what the tests need; install as root (Debian's names): apt-get install %s\n" "${missing[*]}" >&2
	exit 1
fi
