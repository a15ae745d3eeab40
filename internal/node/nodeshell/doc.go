// SPDX-License-Identifier: Apache-2.0

// Package nodeshell has the programs that people of EKS call on a node, for machines that people log in to and that have no systemd:
//
//	systemctl cat UNIT...          the files of a unit; is-active says whether its program runs
//	journalctl -u UNIT             the log of the unit's program, in the form of the journal
//	sudo COMMAND [ARG...]          the command as the machine's root
//
// Units are files that the agent writes for people: it starts the programs itself, and no systemd reads them. Logs are the agent's files
// below /var/log. Whatever else systemd and sudo can do is refused, with what to call instead.
//
// sudo has no rights of its own: it calls a copy of setpriv(1) that the machine's boot left, which the group wheel alone may run.
package nodeshell
