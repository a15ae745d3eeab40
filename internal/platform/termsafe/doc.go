// SPDX-License-Identifier: Apache-2.0

// Package termsafe escapes text that others chose before it is shown on a terminal: names, requests and logs of nodes and users could move
// the cursor, colour or hide lines, and turn the order of letters.
package termsafe
