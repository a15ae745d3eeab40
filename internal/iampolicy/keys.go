// SPDX-License-Identifier: Apache-2.0

package iampolicy

import "strings"

type valueType int

const (
	textType valueType = iota + 1
	arnType
	boolType
	dateType
	numberType
	addressType
)

// keyType is what a condition key's values are.
type keyType struct {
	of   valueType
	many bool // only ForAllValues and ForAnyValue can judge it
}

// keyOf knows the condition keys, in any case. NewContext gives those of the caller and the connection; the service gives the rest when
// an action has them: tags, the parameters of AssumeRole, the policy that is attached. A key that no request of muster could carry is
// not here, so that a policy which relies on it is refused and not silently without effect.
func keyOf(name string) (keyType, bool) {
	lower := strings.ToLower(name)
	switch lower {
	case "aws:username", "aws:userid", "aws:principalaccount", "aws:principaltype", "aws:useragent", "aws:requestedregion",
		"aws:resourceaccount", "sts:externalid", "sts:rolesessionname", "iam:passedtoservice", "iam:awsservicename":
		return keyType{of: textType}, true
	case "aws:principalarn", "iam:policyarn":
		return keyType{of: arnType}, true
	case "aws:securetransport", "aws:multifactorauthpresent", "aws:viaawsservice", "aws:principalisawsservice":
		return keyType{of: boolType}, true
	case "aws:currenttime", "aws:tokenissuetime":
		return keyType{of: dateType}, true
	case "aws:epochtime", "sts:durationseconds":
		return keyType{of: numberType}, true
	case "aws:sourceip":
		return keyType{of: addressType}, true
	case "aws:tagkeys":
		return keyType{of: textType, many: true}, true
	}
	switch lower { // of services that are not here, in the policies that AWS manages
	case "cloudwatch:namespace", "ec2:createaction", "ec2:instancemarkettype", "ec2:managedresourceoperator", "eks:accessentrytype",
		"elasticfilesystem:createaction", "elasticloadbalancing:createaction", "events:managedby", "organizations:serviceprincipal":
		return keyType{of: textType}, true
	case "eks:policyarn", "eks:principalarn":
		return keyType{of: arnType}, true
	case "events:source":
		return keyType{of: textType, many: true}, true
	}
	for _, prefix := range []string{"ec2:resourcetag/", "ssm:resourcetag/", "aws:principaltag/", "aws:requesttag/", "aws:resourcetag/", "iam:resourcetag/"} {
		if rest, ok := strings.CutPrefix(lower, prefix); ok && rest != "" {
			return keyType{of: textType}, true
		}
	}
	return keyType{}, false
}
