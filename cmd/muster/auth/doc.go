// SPDX-License-Identifier: Apache-2.0

// Package auth has the commands that say who becomes what in a cluster.
package auth
