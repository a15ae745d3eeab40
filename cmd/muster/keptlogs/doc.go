// SPDX-License-Identifier: Apache-2.0

// Package keptlogs asks the log store of an installation about the logs of a cluster, for the commands that show the answers.
package keptlogs
