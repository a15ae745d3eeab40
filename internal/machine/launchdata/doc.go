// SPDX-License-Identifier: Apache-2.0

// Package launchdata renders the user data that a machine is launched with, out of its group's launch template and the
// cluster's own NodeConfig.
package launchdata
