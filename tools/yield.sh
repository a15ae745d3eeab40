#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command that leaves the processors to everything else. It must be started as the first process of a session: where the kernel
# groups processes by session, nice counts only within one (sched(7), "The autogroup feature"), and what clusters run has sessions of
# its own.
set -euo pipefail
(($(cut -d ' ' -f 6 "/proc/$$/stat") == $$)) || { printf 'yield.sh: not the first process of its session; start it with setsid\n' >&2; exit 2; }
renice -n 19 -p $$ >/dev/null
[[ ! -e /proc/self/autogroup ]] || printf 19 >/proc/self/autogroup
exec "$@"
