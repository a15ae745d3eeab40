// SPDX-License-Identifier: Apache-2.0

// Package signer holds the key that signs certificates. A Signer signs only what package pki prepared, so a signature is never
// put below anything that was not judged and linted.
//
// CA makes a Signer of a certificate in a file and a Key, wherever that is: File reads one from a file, PKCS11 has one in a
// token. A cloud's key service is one more file here that implements Key.
package signer
