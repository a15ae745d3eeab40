// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"fmt"
	"slices"
	"strings"
)

// Warning names a place of a document that means something else than its author may think. The document is kept.
type Warning struct {
	Path string // $.Statement[0].Condition.StringNotEquals.aws:PrincipalOrgID
	Why  string
}

func (w Warning) String() string { return w.Path + ": " + w.Why }

// Warnings are about the statements that concern IAM and STS: the condition keys and variables that no request to these
// carries, and the effect of each. Statements about other services alone have no effect here, and are not warned of.
func (d Document) Warnings() []Warning {
	var all []Warning
	for i, s := range d.Statements {
		if s.concernsServed() {
			all = append(all, s.warnings(fmt.Sprintf("$.Statement[%d]", i), d.Version == Version2012)...)
		}
	}
	return all
}

// concernsServed reports whether an action of IAM or STS can be meant.
func (s Statement) concernsServed() bool {
	for _, action := range s.Actions {
		lower := strings.ToLower(action)
		if lower == "*" || strings.HasPrefix(lower, "iam:") || strings.HasPrefix(lower, "sts:") {
			return true
		}
	}
	return len(s.NotActions) > 0
}

func (s Statement) warnings(path string, variables bool) []Warning {
	var all []Warning
	for i, c := range s.conditions {
		written := s.Conditions[i]
		at := path + ".Condition." + written.Operator + "." + written.Key
		t, carried := keyOf(c.key)
		switch {
		case !carried && !s.givesPods(c.key):
			effect := "never holds"
			if holds, err := c.holds(nil, nil); err == nil && holds {
				effect = "always holds"
			}
			all = append(all, Warning{at, fmt.Sprintf("no request to IAM or STS carries the key %s here, so that this condition %s", written.Key, effect)})
		case t.many && c.each == "" && c.family != nullFamily:
			all = append(all, Warning{at, "this key may have many values: say ForAllValues: or ForAnyValue: before the operator; of several values nobody can tell, which is a no"})
		}
		for _, text := range written.Values {
			all = append(all, variableWarnings(at, text, variables)...)
		}
	}
	for _, list := range []struct {
		name  string
		texts []string
	}{{"Resource", s.Resources}, {"NotResource", s.NotResources}} {
		for _, text := range list.texts {
			all = append(all, variableWarnings(path+"."+list.name, text, variables)...)
		}
	}
	return all
}

// PodsService is the principal by which EKS gives roles to pods.
const PodsService = "pods.eks.amazonaws.com"

// FargateService is the principal by which EKS gives pod execution roles to machines of Fargate.
const FargateService = "eks-fargate-pods.amazonaws.com"

// givesPods reports whether a statement lets EKS give a role to pods, which is with the cluster as its source, and a
// condition key is about that.
func (s Statement) givesPods(key string) bool {
	return (strings.EqualFold(key, "aws:SourceArn") || strings.EqualFold(key, "aws:SourceAccount")) &&
		slices.Contains(s.Principals, Principal{Service, PodsService})
}

// variableWarnings are about the variables in one text that was parsed.
func variableWarnings(path, text string, variables bool) []Warning {
	if !variables {
		if strings.Contains(text, "${") {
			return []Warning{{path, `${ is text like any other without "Version": "2012-10-17"`}}
		}
		return nil
	}
	g, err := parseGlob(text, false, true)
	if err != nil {
		return nil
	}
	var all []Warning
	for _, p := range g {
		if _, carried := keyOf(p.variable); p.variable != "" && !carried && p.instead == nil {
			all = append(all, Warning{path, fmt.Sprintf("no request to IAM or STS carries the variable ${%s} here, so that the text fits nothing", p.variable)})
		}
	}
	return all
}
