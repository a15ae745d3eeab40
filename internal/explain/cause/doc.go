// SPDX-License-Identifier: Apache-2.0

// Package cause is the catalogue of causes: why a machine does not become a node, or something else of a cluster is not
// as it should be. A cause is one file in causes/, read strictly.
//
// A cause has an identifier that never changes, such as M-IAM-04: a word for its group, and a number of its own. The
// numbers 1 to 69 are those of the list of known reasons why a node does not join EKS; docs/causes.md is generated from
// the catalogue and has them all.
//
// How a cause is known:
//
//	a part wrote the identifier   the part that refused or waits knows why; its word counts before all other evidence
//	a reason or code              a condition's reason, an error code, a rule: words that programs compare
//	an upstream message           a fragment of a message of Kubernetes, containerd or Go; a test finds the fragment in
//	                              the source of the version that Muster builds, so that an upgrade that changes the
//	                              message fails the test
//
// Messages that Muster itself words for people are never matched. A cause of the catalogue that cannot be named yet says
// so, with the reason (see [State]).
//
// What happens if a file is wrong: Read refuses the whole catalogue with every problem and its line. The files are
// compiled in, and a test reads them.
package cause
