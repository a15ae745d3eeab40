// SPDX-License-Identifier: Apache-2.0

// Package thishost reads the facts about this machine that commands need for the node that it is or is to become.
package thishost
