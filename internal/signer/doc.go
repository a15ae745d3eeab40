// SPDX-License-Identifier: Apache-2.0

// Package signer holds the key that signs certificates. A Signer signs only what package pki prepared, so a signature is never
// put below anything that was not judged and linted. A signer of another kind, such as a cloud KMS, is one more file here.
package signer
