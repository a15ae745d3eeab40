// SPDX-License-Identifier: Apache-2.0

// Package join has the commands that make this host a node, and a plain host again.
package join
