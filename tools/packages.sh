# SPDX-License-Identifier: Apache-2.0
#
# To be sourced: how this checkout's scripts get Debian packages.

may_install() { ((EUID == 0)) && command -v apt-get >/dev/null; }

# install_packages PACKAGES...
install_packages() {
	local log=.build/logs/apt.log apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
	printf 'installing what this system lacks: %s\n' "$*" >&2
	mkdir -p "${log%/*}"
	if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
		printf 'installing them failed, see %s; install them by hand: apt-get install %s\n' "$log" "$*" >&2
		return 1
	fi
}
