// SPDX-License-Identifier: Apache-2.0

// Package rotator carries out rotations of the authority that signs kubelets' certificates. Package rotation decides
// about the phases; the rotator looks at the programs that verify those certificates and at the nodes that use them,
// and writes each phase to the store.
//
//	step ──► publish the trusted authorities ──► observe verifiers and nodes ──► rotation.Next ──► Keys.Advance
//
//	verifier         has to read                      seen by
//	clientProbe      client certificates to trust     a connection with a certificate of each authority
//	servingReader    serving certificates to trust    the API server's metrics, which count the reads of its file
//	delegated        client certificates, as read     ConfigMap extension-apiserver-authentication, which is corrected here
//	                 by delegating API servers
//
// What happens if
//
//	a verifier or a node cannot be seen       it has not read yet: the phase stays, and the reason is reported
//	the process is killed at any moment       the phase is on disk, and the next process goes on with it
//	the context ends during a look            what was seen is not used
package rotator
