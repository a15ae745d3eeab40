// SPDX-License-Identifier: Apache-2.0

// Package serviceaccounts answers for the service accounts of all clusters of an account: whose token STS believes and
// by which keys, which pods EKS Pod Identity gives a role, whom the clients of issuers' documents trust, and what the
// pod identity webhooks are told. It asks what each running cluster knows at the moment of a question.
package serviceaccounts
