// SPDX-License-Identifier: Apache-2.0

// Package sshserver prepares OpenSSH's sshd on a machine that was launched with a key pair: one user, one key, and nothing of the host's.
//
// The program is the host's, which a machine sees read-only. Its configuration, the key that may log in and the machine's own host key are on
// the machine's disk. So sshd, and every shell that it gives, are processes of the machine: in its namespaces and control groups, with its
// root directory, below its filter of system calls.
//
//	/etc/ssh/sshd_config                  written at every boot
//	/etc/ssh/authorized_keys/ec2-user     the public key of the key pair, owned by root
//	/etc/ssh/ssh_host_ed25519_key[.pub]   made at the first boot; the host reads the public half to know the machine again
//
// There is no other way to log in: no password, no PAM, no other user, and no forwarding of ports, agents or windows.
package sshserver
