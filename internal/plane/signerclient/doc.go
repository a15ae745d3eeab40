// SPDX-License-Identifier: Apache-2.0

// Package signerclient asks the token signer of a cluster for its public keys, and has it replace the key that signs
// (packages tokensigner and tokenkeys). It proves by a client certificate that it is the account.
//
// The last list that the signer gave is kept on disk, so that what is made of it, such as the issuer's documents, is
// there while the signer is away, also after the account was started again. Which of the keys signs and is published
// follows from the list and the clock.
//
// What happens if
//
//	the signer is away, or answers what is no list   the last list holds
//	there is no list yet                             an error; it is asked again after two seconds
//	the kept list is damaged or lost                 the signer is asked for another
//	an answer to an order is lost                    the order is given again: the signer carries it out once
//
// It trusts whoever has a certificate of the cluster's authority at the signer's address.
package signerclient
