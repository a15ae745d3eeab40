// SPDX-License-Identifier: Apache-2.0

package ststoken

// Rules that refuse, in the order in which they are asked.
const (
	RuleCluster       = "cluster id"
	RuleSize          = "size"
	RulePrefix        = "prefix"
	RuleEncoding      = "encoding"
	RuleURL           = "url"
	RuleScheme        = "scheme"
	RuleHost          = "host"
	RulePath          = "path"
	RuleDuplicate     = "duplicate parameter"
	RuleParameter     = "parameter"
	RuleValue         = "parameter value"
	RuleMissing       = "missing parameter"
	RuleAction        = "action"
	RuleVersion       = "version"
	RuleSignedHeaders = "signed headers"
	RuleSignature     = "signature" // whatever package sigv4 refuses
	RuleExpires       = "expires"
	RuleService       = "service"
	RuleRegion        = "region"
	RuleExpired       = "expired"
	RuleEarly         = "not yet valid"
)
