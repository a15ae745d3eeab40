// SPDX-License-Identifier: Apache-2.0

// Package termsafe escapes untrusted text for terminals: names, requests and logs of nodes and users could otherwise
// move the cursor, colour or hide lines, and reverse the order of letters. It also knows how many columns a text takes
// there, and cuts it to fewer.
package termsafe
