// SPDX-License-Identifier: Apache-2.0

// Package systemd starts, stops and looks at units through systemctl, which is on every host that systemd runs: no D-Bus library,
// no socket of systemd's that has moved between versions, and what is done is what a person would type.
package systemd
