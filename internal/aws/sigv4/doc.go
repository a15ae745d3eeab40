// SPDX-License-Identifier: Apache-2.0

// Package sigv4 is the server's side of AWS Signature Version 4: it reads what a request claims and verifies it.
// Signing is the business of the SDKs. The rules are those of "Signature Version 4 for API requests" in the IAM User
// Guide, for all services but S3, which neither normalises paths nor escapes them twice. Where that leaves two readings
// of a request, the request is refused.
//
//	Request ──ReadHeader, ReadPresigned──► Signed ──Current(now)──► ──Verify(key)──► proven
package sigv4
