// SPDX-License-Identifier: Apache-2.0

// Package terminal has what all commands share towards their user: streams, common flags, output formats, progress, and
// usage errors that suggest the right word.
package terminal
