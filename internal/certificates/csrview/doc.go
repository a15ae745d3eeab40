// SPDX-License-Identifier: Apache-2.0

// Package csrview explains one certificate signing request: its contents, read from its bytes, its outcome, and the
// reasons.
//
// The reasons are those of the decision that the certificate controller wrote into the request together with its
// verdict, as a condition: only writers with the right to approve or sign can set one. Nodes can write Events: their
// text is shown with the name of their reporter.
package csrview
