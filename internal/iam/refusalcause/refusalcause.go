// SPDX-License-Identifier: Apache-2.0

// Package refusalcause gives the rules that refuse a machine the identifiers of their causes, as docs/causes.md has them
// and `muster explain` names them. Who tells people of a refusal writes the identifier behind the rule, so that nobody
// has to guess it from the sentence.
//
// It is pure. A rule without a cause has no identifier: the refusal is told as it is, and explain does not name it.
package refusalcause

import (
	"maps"
	"regexp"
	"strings"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
)

// RuleNotANode is the rule of a machine whose role makes it another user than that of its Node.
const RuleNotANode = "not-a-node"

// RoleCredentials and a code of IAM are the rule of an instance that has no credentials of a role.
const RoleCredentials = "role-credentials/"

// signature and a code are the rule of a token that is not signed as it should be. The identity service says of
// [sigv4.CodeMismatch] alone that the key is its own and signed something else.
const signature = ststoken.RuleSignature + "/"

// causes are the identifiers, by rule. A rule that ends with a slash stands for every code behind it that has no entry:
// a code is listed unless all that there are mean the same.
var causes = map[string]string{
	string(identity.RuleNoEntry):     "M-IAM-01",
	string(identity.RulePrincipalID): "M-IAM-04",
	string(identity.RuleMode):        "M-IAM-05",
	string(identity.RuleEntry):       "M-IAM-06",
	signature + sigv4.CodeMismatch:   "M-IAM-07",
	ststoken.RuleExpired:             "M-IAM-08",
	ststoken.RuleEarly:               "M-IAM-08",
	"date/":                          "M-IAM-08",
	ststoken.RuleHost:                "M-IAM-11",
	ststoken.RuleRegion:              "M-IAM-11",
	RoleCredentials + "NoSuchEntity": "M-IAM-12",
	RoleCredentials + "AccessDenied": "M-IAM-22",
	RuleNotANode:                     "M-IAM-14",

	string(identity.RuleMachineCluster): "M-IAM-88",
}

// Of returns the identifier of the cause for which a rule refuses a machine; "" if there is none.
func Of(rule string) string {
	if id, ok := causes[rule]; ok {
		return id
	}
	if before, _, ok := strings.Cut(rule, "/"); ok {
		return causes[before+"/"]
	}
	return ""
}

// All returns every identifier that Of returns, by rule. The map is a copy.
func All() map[string]string {
	return maps.Clone(causes)
}

// begins is how Sentence begins, and said what stands there with an identifier.
const begins = "refused by rule "

var said = regexp.MustCompile(`^` + begins + `[^(\n:;]{1,80} \((M-[A-Z]+-[0-9]{2,3})\)`)

// Sentence says which rule refused, with the identifier of the cause if there is one, what the rule saw, and what to do.
func Sentence(rule, saw, fix string) string {
	text := begins + rule
	if id := Of(rule); id != "" {
		text += " (" + id + ")"
	}
	if saw != "" {
		text += ": " + saw
	}
	if fix != "" {
		text += "; " + fix
	}
	return text
}

// Read returns the identifier that Sentence wrote into a text; "" if there is none. A stranger's words, which the
// rule saw, come behind the place of the identifier and are not taken for it.
func Read(text string) string {
	at := strings.Index(text, begins)
	if at < 0 {
		return ""
	}
	if found := said.FindStringSubmatch(text[at:]); found != nil {
		return found[1]
	}
	return ""
}
