// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"errors"
	"strings"
)

type valueType int

const (
	anyType valueType = iota // of a key that is not known here
	textType
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

// keyOf knows the condition keys that requests to IAM and STS carry, in any case. NewContext gives those of the caller
// and the connection; the service gives the rest when an action has them: tags, the parameters of AssumeRole, the
// policy that is attached. Another key is kept, as on AWS, and is absent from every request: Document.Warnings names
// it.
func keyOf(name string) (t keyType, carried bool) {
	lower := strings.ToLower(name)
	switch lower {
	case "aws:username", "aws:userid", "aws:principalaccount", "aws:principaltype", "aws:principalservicename", "aws:useragent",
		"aws:requestedregion", "aws:sourceidentity", "sts:sourceidentity", "aws:resourceaccount", "sts:externalid", "sts:rolesessionname", "iam:passedtoservice", "iam:awsservicename":
		return keyType{of: textType}, true
	case "aws:principalarn", "aws:federatedprovider", "iam:policyarn", "iam:permissionsboundary":
		return keyType{of: arnType}, true
	case "aws:securetransport", "aws:multifactorauthpresent", "aws:viaawsservice", "aws:principalisawsservice":
		return keyType{of: boolType}, true
	case "aws:currenttime", "aws:tokenissuetime":
		return keyType{of: dateType}, true
	case "aws:epochtime", "sts:durationseconds":
		return keyType{of: numberType}, true
	case "aws:sourceip":
		return keyType{of: addressType}, true
	case "aws:sourceaccount": // requests of services on behalf of a resource carry it, and no request of IAM or STS does
		return keyType{of: textType}, false
	case "aws:sourcearn":
		return keyType{of: arnType}, false
	case "aws:calledvia": // requests that a service makes for a caller carry it, as the next ones
		return keyType{of: textType, many: true}, false
	case "aws:calledviafirst", "aws:calledvialast":
		return keyType{of: textType}, false
	case "aws:tagkeys", "sts:transitivetagkeys":
		return keyType{of: textType, many: true}, true
	}
	for _, prefix := range []string{"aws:principaltag/", "aws:requesttag/", "aws:resourcetag/", "iam:resourcetag/"} {
		if rest, ok := strings.CutPrefix(lower, prefix); ok && rest != "" {
			return keyType{of: textType}, true
		}
	}
	if providerKey(lower) {
		return keyType{of: textType}, true
	}
	return keyType{}, false
}

// providerKey reports whether a condition key is about a token of an OpenID Connect provider: HOST/PATH:sub or
// HOST/PATH:aud. Services have neither dots nor slashes in their names.
func providerKey(lower string) bool {
	at := strings.LastIndexByte(lower, ':')
	return at > 0 && strings.ContainsAny(lower[:at], "./") && (lower[at+1:] == "sub" || lower[at+1:] == "aud")
}

// maxKey is more than the longest key: an encryption context or a tag, whose own key has 128 characters.
const maxKey = 512

// checkConditionKey checks the form of a key in a condition. AWS takes one without a service, too, which no request
// carries.
func checkConditionKey(name string) error {
	if name == "" || len(name) > maxKey || strings.Contains(name, ":") || strings.ContainsAny(name, "{}") {
		return CheckKey(name)
	}
	return nil
}

// CheckKey checks the form of a condition key: that of a service, a colon, and a name, which may have tags and colons
// in it.
func CheckKey(name string) error {
	service, rest, ok := strings.Cut(name, ":")
	if !ok || service == "" || rest == "" || strings.ContainsAny(name, "{}") || service != strings.TrimSpace(service) {
		return errors.New("a condition key has the form SERVICE:NAME, such as aws:SourceIp or ec2:ResourceTag/team")
	}
	if len(name) > maxKey {
		return errors.New("a condition key has 512 bytes at most")
	}
	return nil
}
