// SPDX-License-Identifier: Apache-2.0

// Package node has the commands that run on a node, or about one.
package node
