// SPDX-License-Identifier: Apache-2.0

// Package join has the commands that make a host with systemd a node, and undo it: join, leave.
package join
