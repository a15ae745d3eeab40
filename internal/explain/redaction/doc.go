// SPDX-License-Identifier: Apache-2.0

// Package redaction takes secrets out of what is shown to others: texts such as logs, and objects. It is pure.
//
// It knows a secret by its form (a private key, a token, a signed request) or by the name beside it (password, token,
// secretAccessKey). A value that has neither a form nor a name cannot be known by looking at it: so whoever makes
// something to send leaves out what may hold such values, and redacts the rest. A text that only looks like a secret is
// taken out, too.
//
// Whoever wrote the text may have been a stranger. All expressions run in time linear in the text (package regexp).
package redaction
