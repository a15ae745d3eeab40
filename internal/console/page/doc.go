// SPDX-License-Identifier: Apache-2.0

// Package page makes the HTML of the console: a value of package view in, a page out, by html/template. It has the style
// sheet and the script that pages load, too. It is pure.
//
// Every text is escaped by html/template for the place where it stands. Texts of strangers are made one visible line or
// visible lines before that (package termsafe), so that no text turns others around by characters for the direction of
// writing. A page has no inline script, no inline style and nothing of another server.
package page
