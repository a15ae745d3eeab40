// SPDX-License-Identifier: Apache-2.0

// Package identityservice is muster's own IAM and STS: it keeps accounts, users, access keys, roles, instance profiles
// and policies, and answers AWS's query protocol so that the AWS CLI and SDKs work against it.
//
//	request ──► form and limits ──► access key ──► rate ──► signature, time ──► allowed? ──► action ──► answer, one line of log
//	                                    │                                          │            │
//	                                    └── State: what is known now, immutable ───┴────────────┤
//	                                                                                            ▼
//	             authenticators ◄── changes, < 1 s ── hub ◄── State changed ◄── Store (management plane, or memory in tests)
//
// Long-lived keys (AKIA…) are kept. Sessions (ASIA…) are not: a session's token is its content, sealed by a key of the
// service, and at every use the user, role, instance and key that it came from are looked up again, so that it ends
// with any of them.
//
// Reads come from memory and never wait for the management plane. While that is away the service goes on with what it
// knew last, and requests that change something are answered with ServiceUnavailable.
package identityservice
