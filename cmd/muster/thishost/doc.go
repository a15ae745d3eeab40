// SPDX-License-Identifier: Apache-2.0

// Package thishost reads what this machine is, for commands about the node that it is or is to become.
package thishost
