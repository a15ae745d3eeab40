// SPDX-License-Identifier: Apache-2.0

package webidentity

// Rules that refuse, in the order in which they are asked.
const (
	RuleSize      = "size"
	RuleForm      = "form"
	RuleHeader    = "header"
	RuleAlgorithm = "algorithm"
	RuleKeyID     = "key id"
	RuleClaims    = "claims"
	RuleMissing   = "missing claim"
	RuleKey       = "key"
	RuleSignature = "signature"
	RuleExpired   = "expired"
	RuleEarly     = "not yet valid"
	RuleAudience  = "audience"
	RuleBound     = "service account"
)
