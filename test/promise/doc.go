// SPDX-License-Identifier: Apache-2.0

// Package promise reads docs/promises.md: the figures that a user may rely on, each named once. Stories ask for the
// effects and take the figure from the page, other pages of docs link to its row, and a test compares all three.
//
// A figure is a time from the moment at which a request was answered, or a process ended, to the effect. Nothing scales
// it: a slow machine misses it.
//
// # What happens if
//
//   - a row cannot be read, or an id is there twice: [Parse] returns an error with the line, and no figures.
//   - a row is missing: [Figures.Of] returns an error, and the story fails.
package promise
