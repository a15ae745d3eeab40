// SPDX-License-Identifier: Apache-2.0

package podpatch

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// Domain is the prefix of annotations.
	Domain = "eks.amazonaws.com"
	// Audience is that of tokens for STS.
	Audience = "sts.amazonaws.com"
	// DefaultExpiration is how long a token is good for, in seconds, and minExpiration the least that the API server
	// gives.
	DefaultExpiration = int64(86400)
	minExpiration     = int64(600)
)

// Defaults are what holds where annotations say nothing.
type Defaults struct {
	Domain      string // Domain if empty
	Audience    string // Audience if empty
	RegionalSTS bool
	Expiration  int64 // seconds; DefaultExpiration if 0
	// Partition and AccountID make an ARN of a role that is annotated by its name alone; empty: names are taken as they
	// are.
	Partition, AccountID string
}

// Complete fills in what is empty.
func (d Defaults) Complete() Defaults {
	if d.Domain == "" {
		d.Domain = Domain
	}
	if d.Audience == "" {
		d.Audience = Audience
	}
	if d.Expiration == 0 {
		d.Expiration = DefaultExpiration
	}
	return d
}

// Entry is what is said of a service account.
type Entry struct {
	RoleARN         string // empty: it has no role
	Audience        string
	UseRegionalSTS  bool
	TokenExpiration int64 // seconds
}

var roleARN = regexp.MustCompile(`^arn:aws[a-z0-9-]*:iam::\d{12}:role\/[\w-\/.@+=,]+$`)

// ReadAccount reads the annotations of a service account. The warnings say what was passed over.
func ReadAccount(annotations map[string]string, d Defaults) (e Entry, warnings []string) {
	e = Entry{Audience: d.Audience, UseRegionalSTS: d.RegionalSTS, TokenExpiration: d.Expiration}
	if role, ok := annotations[d.Domain+"/role-arn"]; ok {
		if !strings.Contains(role, "arn:") && d.AccountID != "" {
			role = "arn:" + d.Partition + ":iam::" + d.AccountID + ":role/" + role
		}
		if !roleARN.MatchString(role) {
			warnings = append(warnings, fmt.Sprintf("%s/role-arn is %.200q, which is not the ARN of a role: STS will refuse it", d.Domain, role))
		}
		e.RoleARN = role
	}
	if audience, ok := annotations[d.Domain+"/audience"]; ok {
		e.Audience = audience
	}
	if text, ok := annotations[d.Domain+"/sts-regional-endpoints"]; ok {
		if regional, err := strconv.ParseBool(text); err == nil {
			e.UseRegionalSTS = regional
		} else {
			warnings = append(warnings, fmt.Sprintf("%s/sts-regional-endpoints is %.40q: must be true or false", d.Domain, text))
		}
	}
	if text, ok := annotations[d.Domain+"/token-expiration"]; ok {
		if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
			e.TokenExpiration = max(seconds, minExpiration)
		} else {
			warnings = append(warnings, fmt.Sprintf("%s/token-expiration is %.40q: must be a number of seconds", d.Domain, text))
		}
	}
	return e, warnings
}

// ReadConfigMap reads the key config of the ConfigMap pod-identity-webhook: entries by NAMESPACE/NAME, or */NAME for
// every namespace.
func ReadConfigMap(config string, d Defaults) (map[string]Entry, error) {
	var raw map[string]*Entry
	if err := json.Unmarshal([]byte(config), &raw); err != nil {
		return nil, fmt.Errorf("reading config of the ConfigMap: %w", err)
	}
	entries := make(map[string]Entry, len(raw))
	for key, e := range raw {
		namespace, name, ok := strings.Cut(key, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") || e == nil {
			return nil, fmt.Errorf("reading config of the ConfigMap: %.200q must be NAMESPACE/NAME or */NAME, with an object", key)
		}
		if e.TokenExpiration == 0 {
			e.TokenExpiration = d.Expiration
		}
		entries[key] = *e
	}
	return entries, nil
}

// Accounts is what is known of service accounts at a moment.
type Accounts struct {
	// Account finds the entry of a service account's annotations; ok is false if there is no such service account.
	Account func(namespace, name string) (Entry, bool)
	// Configured are the entries of the ConfigMap.
	Configured map[string]Entry
}

// Find finds the entry that counts: that of the annotations if they name a role, else the ConfigMap's, else */NAME
// there. Known is false if neither says anything of the service account: it may come in a moment.
func (a Accounts) Find(namespace, name string) (e Entry, known bool) {
	own, known := a.Account(namespace, name)
	if known && own.RoleARN != "" {
		return own, true
	}
	for _, key := range []string{namespace + "/" + name, "*/" + name} {
		if e, ok := a.Configured[key]; ok {
			return e, true
		}
	}
	return Entry{TokenExpiration: DefaultExpiration}, known
}

// Common is the part of an entry that counts for container credentials, too. */NAME is not asked, as in the original.
func (a Accounts) Common(namespace, name string) (regionalSTS bool, expiration int64) {
	if own, ok := a.Account(namespace, name); ok {
		return own.UseRegionalSTS, own.TokenExpiration
	}
	if e, ok := a.Configured[namespace+"/"+name]; ok {
		return e.UseRegionalSTS, e.TokenExpiration
	}
	return false, DefaultExpiration
}
