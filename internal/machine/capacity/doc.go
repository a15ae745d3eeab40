// SPDX-License-Identifier: Apache-2.0

// Package capacity holds the rules about what one host carries: control planes by memory, programs by inotify
// instances, state by disk, and nodes that each claim the whole host. It is pure: the figures of the host are
// arguments.
//
// Every rule that refuses returns an error that names the figure, what is needed, and what a person can do.
package capacity
