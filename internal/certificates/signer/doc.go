// SPDX-License-Identifier: Apache-2.0

// Package signer holds the key that signs certificates. A Signer signs only what package pki prepared, so nothing is
// signed that was not judged and linted.
//
// CA makes a Signer of a certificate in a file and a Key. NewFile reads the key from a file, PKCS11 uses one in a
// token. Support of a cloud's key service is one more file here that implements Key.
package signer
