// SPDX-License-Identifier: Apache-2.0

package webidentity

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/iam/tokenrefusal"
)

// Claims are what an issuer says in a token.
type Claims struct {
	Issuer    string // a URL
	Subject   string
	Audiences []string
	// AuthorizedParty is the claim azp: the client that the token was issued to, empty if it is not there.
	AuthorizedParty string
	ID              string // the claim jti, empty if it is not there
	Expires         time.Time
	IssuedAt        time.Time
	NotBefore       time.Time // zero if it is not there
	// Tags and TransitiveTagKeys are of the claim https://aws.amazon.com/tags, by key.
	Tags              map[string]string
	TransitiveTagKeys []string
	// SourceIdentity is the claim https://aws.amazon.com/source_identity, empty if it is not there.
	SourceIdentity string

	bound *boundClaim
}

// Bound is what a token of Kubernetes is bound to.
type Bound struct {
	Namespace                         string
	ServiceAccount, ServiceAccountUID string
	Pod, PodUID                       string // empty for a token that is not a pod's
	Node, NodeUID                     string // that the pod runs on; empty if it is not said
}

// document is the claims as they are written.
type document struct {
	Issuer          string          `json:"iss"`
	Subject         string          `json:"sub"`
	Audience        json.RawMessage `json:"aud"`
	AuthorizedParty string          `json:"azp"`
	ID              string          `json:"jti"`
	Expires         *seconds        `json:"exp"`
	IssuedAt        *seconds        `json:"iat"`
	NotBefore       *seconds        `json:"nbf"`
	Tags            *struct {
		Principal  map[string][]string `json:"principal_tags"`
		Transitive []string            `json:"transitive_tag_keys"`
	} `json:"https://aws.amazon.com/tags"`
	SourceIdentity string      `json:"https://aws.amazon.com/source_identity"`
	Kubernetes     *boundClaim `json:"kubernetes.io"`
}

// boundClaim is the private claim of kube-apiserver (pkg/serviceaccount/claims.go).
type boundClaim struct {
	Namespace      string    `json:"namespace"`
	Node           reference `json:"node"`
	Pod            reference `json:"pod"`
	ServiceAccount reference `json:"serviceaccount"`
}

type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

func readClaims(raw []byte) (Claims, error) {
	var d document
	if err := strict(raw, &d); err != nil {
		return Claims{}, tokenrefusal.New(RuleClaims, tokenrefusal.Quote(err.Error()), "the claims must be one JSON object, each key once and of its type")
	}
	audiences, err := readAudiences(d.Audience)
	if err != nil {
		return Claims{}, tokenrefusal.New(RuleClaims, "", err.Error())
	}
	if name := d.missing(audiences); name != "" {
		return Claims{}, tokenrefusal.New(RuleMissing, name, "the issuer must say "+name)
	}
	for _, text := range []string{d.Issuer, d.Subject, d.AuthorizedParty, d.ID, d.SourceIdentity} {
		if len(text) > maxText {
			return Claims{}, tokenrefusal.New(RuleClaims, tokenrefusal.Quote(text), "the issuer must say iss, sub, azp and jti in 1024 bytes each")
		}
	}
	c := Claims{
		Issuer: d.Issuer, Subject: d.Subject, Audiences: audiences, AuthorizedParty: d.AuthorizedParty, ID: d.ID,
		Expires: d.Expires.Time, IssuedAt: d.IssuedAt.Time, SourceIdentity: d.SourceIdentity, bound: d.Kubernetes,
	}
	if d.NotBefore != nil {
		c.NotBefore = d.NotBefore.Time
	}
	if d.Tags == nil {
		return c, nil
	}
	c.Tags, c.TransitiveTagKeys = make(map[string]string, len(d.Tags.Principal)), d.Tags.Transitive
	for key, values := range d.Tags.Principal {
		if len(values) != 1 {
			return Claims{}, tokenrefusal.New(RuleClaims, "the tag "+tokenrefusal.Quote(key), "a tag has one value, in a list")
		}
		c.Tags[key] = values[0]
	}
	return c, nil
}

// missing is the first claim that must be there and is not.
func (d document) missing(audiences []string) string {
	switch {
	case d.Issuer == "":
		return "iss"
	case d.Subject == "":
		return "sub"
	case len(audiences) == 0:
		return "aud"
	case d.Expires == nil:
		return "exp"
	case d.IssuedAt == nil:
		return "iat"
	}
	return ""
}

// readAudiences reads a text, or a list of them.
func readAudiences(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var one string
	var all []*string
	switch {
	case json.Unmarshal(raw, &one) == nil && string(raw) != "null":
		all = []*string{&one}
	case json.Unmarshal(raw, &all) != nil, len(all) > maxAudiences:
		return nil, errors.New("aud must be a text, or a list of at most 100")
	}
	audiences := make([]string, 0, len(all))
	for _, a := range all {
		if a == nil || *a == "" || len(*a) > maxText {
			return nil, errors.New("an audience must have from 1 to 1024 bytes")
		}
		audiences = append(audiences, *a)
	}
	return audiences, nil
}

// For finds the first of the token's audiences that is wanted. An authorized party takes their place, as for STS: the
// others of a list may be anybody's. Errors are *tokenrefusal.Refusal.
func (c Claims) For(wanted ...string) (string, error) {
	for _, audience := range c.EffectiveAudiences() {
		if slices.Contains(wanted, audience) {
			return audience, nil
		}
	}
	return "", tokenrefusal.New(RuleAudience, tokenrefusal.Quote(strings.Join(c.EffectiveAudiences(), " ")), "ask for a token with the audience "+strings.Join(wanted, " or "))
}

// EffectiveAudiences are the authorized party, or else the audiences.
func (c Claims) EffectiveAudiences() []string {
	if c.AuthorizedParty != "" {
		return []string{c.AuthorizedParty}
	}
	return c.Audiences
}

// subjectPrefix is what the subject of a service account begins with.
const subjectPrefix = "system:serviceaccount:"

// Bound returns what a token of Kubernetes is bound to; its subject must say the same. Errors are
// *tokenrefusal.Refusal.
func (c Claims) Bound() (Bound, error) {
	k := c.bound
	switch {
	case k == nil || k.Namespace == "" || k.ServiceAccount.Name == "" || k.ServiceAccount.UID == "":
		return Bound{}, tokenrefusal.New(RuleBound, "none", "ask for a token that is bound: by a projected volume or TokenRequest")
	case c.Subject != subjectPrefix+k.Namespace+":"+k.ServiceAccount.Name:
		return Bound{}, tokenrefusal.New(RuleBound, tokenrefusal.Quote(c.Subject), "the subject must be the service account that the token is bound to")
	case (k.Pod.Name == "") != (k.Pod.UID == ""), k.Node.Name == "" && k.Node.UID != "":
		return Bound{}, tokenrefusal.New(RuleBound, "half a reference", "a pod and a node have a name and a uid")
	}
	return Bound{
		Namespace: k.Namespace, ServiceAccount: k.ServiceAccount.Name, ServiceAccountUID: k.ServiceAccount.UID,
		Pod: k.Pod.Name, PodUID: k.Pod.UID, Node: k.Node.Name, NodeUID: k.Node.UID,
	}, nil
}
