// SPDX-License-Identifier: Apache-2.0

// Package kms has the actions of KMS's API, over records of the management plane: keys and aliases. A key is a name
// that other resources refer to. It has no key material, so nothing is encrypted with it; its policy is kept and not
// evaluated, and IAM's policies alone decide.
//
// What happens if
//
//	a key's deletion date has passed       it is gone from that moment on; the next list or create deletes its record and aliases
//	a key is named by its alias            IAM is asked about the key, with kms:RequestAlias
//	a key is not there                     IAM is asked about it all the same; who may is told NotFoundException
//	CreateKey is sent twice                two keys, as on AWS: KMS has no client token
//	the management plane is away           DependencyTimeoutException, which SDKs try again
package kms
