// SPDX-License-Identifier: Apache-2.0

// Package csrcontroller is the certificate controller: it approves and signs the certificate signing requests of
// kubelets.
//
// One pass over one request:
//
//	read ─► gather facts ─► policy.Decide ─┬─ Approve ─► prepare and lint ─► write approval ─► sign ─► write certificate
//	                                       ├─ Deny ────► write denial, or failure if it was approved before
//	                                       ├─ Wait ────► again when a fact changes, and after a while
//	                                       └─ Ignore ──► leave it
//
// A request that another approver approved is judged again before it is signed, by the rules about its contents. The
// bytes that were judged are the bytes that are signed: a pki.Request is immutable. Every pass ends in a log line with
// all checks, a metric and, unless the request was approved, an Event on the request, because that is where people
// look.
package csrcontroller
