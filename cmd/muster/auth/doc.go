// SPDX-License-Identifier: Apache-2.0

// Package auth has the command that checks entries and shows what an IAM principal becomes in a cluster: auth check.
package auth
