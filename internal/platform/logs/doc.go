// SPDX-License-Identifier: Apache-2.0

// Package logs reads the log files of components and machines as one stream: the parts of a rotated file in their
// order, several files merged by the times in their lines, new lines as they are written. Memory is bounded whatever
// the size of the files.
//
// A line's time is read from the line itself, in the forms that the programs here write (see [Stamp]). A line without
// one, as in a stack trace, belongs to the line above it.
package logs
