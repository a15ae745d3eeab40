// SPDX-License-Identifier: Apache-2.0

// Package csrview puts together what is known about a certificate signing request: what it asks for, read from its bytes, what
// came of it, and why.
//
// The why comes from the decision that the certificate controller wrote into the request together with its verdict. Whoever
// creates a request chooses its annotations, so a decision is believed only if the API server noted that it was written
// through /approval or /status, which takes the right to approve or sign. Events can be written by nodes: what they tell is
// repeated with their name on it.
package csrview
