// SPDX-License-Identifier: Apache-2.0

// Package pki reads certificate signing requests from their raw bytes and prepares certificates from the result.
//
// The way of one certificate:
//
//	bytes ── Parse ──► Request ── policy decides ──► Prepare ──► Prepared ── Sign (once) ──► certificate
//
// A Request cannot be changed and a Prepared can only come from Prepare, so the judged, the linted and the signed value
// are one. Everything that Parse does not know is refused: a signer must never drop or copy something that the policy
// did not see. crypto/x509 alone is not enough for that: it keeps the last of two common names, drops SANs of other
// types and ignores attributes.
package pki
