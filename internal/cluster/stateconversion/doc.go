// SPDX-License-Identifier: Apache-2.0

// Package stateconversion brings the state directory of an earlier Muster to what this one reads, step by step, and
// refuses the state directory of a newer one.
//
// A state directory has a layout, which is a number in the file layout: what lies where in the directory, and what is in
// the files. Each [Step] brings the directory from one layout to the next. The record written.json says which release
// wrote the directory last, and to which layout that release brings it.
//
//	layout 4, of a release before ──► all steps are checked ──► records are saved ──► the record ──► a step ──► layout 5 ──► a step ──► …
//
// The list of the steps is [Steps]. A later release appends its steps, and changes none that are there. Objects of the
// management plane are converted elsewhere (package kinddefinitions), as are machines, at their next boot.
//
// What happens if
//
//	a step cannot be taken               nothing is changed, also by other steps: all are checked before the first one
//	the service dies in a step           the next one takes the same step again; what a step has converted already stays
//	it dies between two steps            the layout says which step is next
//	it dies while records are saved      they are saved again: nothing was changed
//	a newer release carries on           what the release before began; the records that were saved are those of before both
//	an older release is started          it refuses the directory and names the release that wrote it; from v0.2.0 on, also
//	                                     a directory whose conversion has only begun
//
// It trusts the state directory, which is private to its owner, and that one service runs on it.
package stateconversion
