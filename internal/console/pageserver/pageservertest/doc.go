// SPDX-License-Identifier: Apache-2.0

// Package pageservertest has installations in memory for tests of the console: a small one with troubles, a hostile one and
// a large one, and a source of them that fails on demand.
package pageservertest
