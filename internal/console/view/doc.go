// SPDX-License-Identifier: Apache-2.0

// Package view decides what the pages of the console show: facts of an installation in, a value for each page out. It is
// pure, and each value is JSON as well, for the tests and for programs.
//
// Texts of machines and users are a stranger's, and stay as they were written here; package page escapes them.
//
// What happens if something could not be read: it is in the list Unseen of each page that would have shown it, so that a
// page with gaps does not look like a healthy installation.
package view
