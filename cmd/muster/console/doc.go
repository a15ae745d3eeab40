// SPDX-License-Identifier: Apache-2.0

// Package console is a command's side towards its user: flags, streams, formats, tables, progress, errors of usage.
package console
