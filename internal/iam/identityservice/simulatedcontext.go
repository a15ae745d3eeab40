// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// contextTypes are the types that a ContextKeyType may be. Operators say how values are compared, so that the type adds
// nothing to them.
var contextTypes = []string{
	"string", "stringList", "numeric", "numericList", "boolean", "booleanList", "ip", "ipList", "binary", "binaryList", "date", "dateList",
}

// simulatedContext are the condition keys of a simulated request: the time, those of the user or role that would send
// it, and over them those that are passed.
func (c *call) simulatedContext(p principal, entries []contextEntry) (map[string][]string, error) {
	conditions := map[string][]string{
		"aws:currenttime": {c.now.UTC().Format(time.RFC3339)}, "aws:epochtime": {strconv.FormatInt(c.now.Unix(), 10)},
	}
	if user, ok := c.state.UserByID(p.id); ok {
		maps.Copy(conditions, simulatedPrincipal(user.ARN(), user.Account, "User", user.Tags))
		conditions["aws:username"], conditions["aws:userid"] = []string{user.Name}, []string{user.ID}
	}
	if role, ok := c.state.RoleByID(p.id); ok {
		maps.Copy(conditions, simulatedPrincipal(role.ARN(), role.Account, "AssumedRole", role.Tags))
	}
	for i, e := range entries {
		if e.ContextKeyType != "" && !slices.Contains(contextTypes, e.ContextKeyType) {
			return nil, iamfault.Errorf(iamfault.InvalidInput, "ContextEntries.member.%d.ContextKeyType is %.40q: it must be string, numeric, boolean, ip, binary or date, or a list of it such as stringList",
				i+1, e.ContextKeyType)
		}
		if err := iampolicy.CheckKey(e.ContextKeyName); err != nil {
			return nil, iamfault.Errorf(iamfault.InvalidInput, "ContextEntries.member.%d.ContextKeyName: %v", i+1, err)
		}
		conditions[lower(e.ContextKeyName)] = e.ContextKeyValues
	}
	return conditions, nil
}

func simulatedPrincipal(a arn.ARN, account, kind string, tags []iam.Tag) map[string][]string {
	conditions := map[string][]string{
		"aws:principalarn": {a.String()}, "aws:principalaccount": {account}, "aws:principaltype": {kind},
		"aws:principalisawsservice": {"false"}, "aws:viaawsservice": {"false"},
	}
	for _, t := range tags {
		conditions["aws:principaltag/"+lower(t.Key)] = []string{t.Value}
	}
	return conditions
}

// withResource adds the account of the resource, if it has one and nothing else was passed.
func withResource(conditions map[string][]string, resource string) map[string][]string {
	const key = "aws:resourceaccount"
	a, err := arn.Parse(resource)
	if _, passed := conditions[key]; err != nil || a.Account == "" || passed {
		return conditions
	}
	with := maps.Clone(conditions)
	with[key] = []string{a.Account}
	return with
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

type contextKeysCustomIn struct {
	PolicyInputList []string
}

type contextKeysPrincipalIn struct {
	PolicySourceArn string
	PolicyInputList []string
}

type contextKeysOut struct{ ContextKeyNames []string }

func (s *Service) registerContextKeys(front *awsfront.Front) {
	register(s, front, apiIAM, "GetContextKeysForCustomPolicy", reads, func(*call, contextKeysCustomIn) (target, error) { return anything(), nil },
		func(c *call, in contextKeysCustomIn) (*contextKeysOut, error) {
			return s.contextKeys(c, "", in.PolicyInputList)
		})
	register(s, front, apiIAM, "GetContextKeysForPrincipalPolicy", reads, func(_ *call, in contextKeysPrincipalIn) (target, error) {
		return target{resource: in.PolicySourceArn}, nil
	}, func(c *call, in contextKeysPrincipalIn) (*contextKeysOut, error) {
		return s.contextKeys(c, in.PolicySourceArn, in.PolicyInputList)
	})
}

// contextKeys are the condition keys that policies name.
func (s *Service) contextKeys(c *call, source string, policies []string) (*contextKeysOut, error) {
	var rights iampolicy.Rights
	if source != "" {
		p, err := c.sourceOf(source)
		if err != nil {
			return nil, err
		}
		if rights, err = s.rights(c.state, p); err != nil {
			return nil, err
		}
	}
	passed := simulation{policies: policies}
	if err := passed.add(&rights); err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, p := range rights.Identity {
		for _, key := range p.Document.Keys() {
			all[key] = true
		}
	}
	return &contextKeysOut{sortedKeys(all)}, nil
}
