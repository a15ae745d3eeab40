// SPDX-License-Identifier: Apache-2.0

// Package systemd starts, stops and inspects units through systemctl, which is on every host with systemd: no D-Bus
// library, no socket of systemd's that has moved between versions, and each action is a command that a person could
// type.
package systemd
