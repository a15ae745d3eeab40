// SPDX-License-Identifier: Apache-2.0

// Package console has the tests of muster console's pages in a real Chromium, which make console-test runs. It is a module
// of its own, so that no other build needs the library that drives the browser.
package console
