// SPDX-License-Identifier: Apache-2.0

// Package eventpattern has the patterns by which rules of EventBridge choose events. A pattern is a JSON object with the
// shape of the events that it matches; a list holds values or ways to match, and a field matches by any of them:
//
//	{"source": ["aws.ec2"], "detail": {"state": [{"anything-but": ["running"]}]}}
//
// Parse is strict: a way to match that is not here is refused by its name, so that no rule is kept that would match what
// its owner did not mean. The ways are those of EventBridge's user guide, "Comparison operators": a value, null, prefix,
// suffix and equals-ignore-case (both also within prefix and suffix), anything-but (a value, a list, prefix, suffix,
// equals-ignore-case, wildcard), numeric, exists, wildcard, cidr, and $or.
package eventpattern
