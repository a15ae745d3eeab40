// SPDX-License-Identifier: Apache-2.0

// Package pki reads certificate signing requests from their raw bytes and prepares certificates from what it read.
//
// The way of one certificate:
//
//	bytes ── Parse ──► Request ── policy decides ──► Prepare ──► Prepared ── Sign (once) ──► certificate
//
// A Request cannot be changed and a Prepared can only come from Prepare, so what was judged, what was linted and what is
// signed is one value. Everything that Parse does not know is refused: a signer must never drop or copy something that the
// policy did not see. crypto/x509 alone is not enough for that: it keeps the last of two common names, drops SANs of other
// types and ignores attributes.
package pki
