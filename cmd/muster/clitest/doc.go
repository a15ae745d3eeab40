// SPDX-License-Identifier: Apache-2.0

// Package clitest has what tests of commands share: a world of objects, a command line with fake planes behind it,
// golden files.
package clitest
