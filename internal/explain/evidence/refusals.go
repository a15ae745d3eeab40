// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/iam/refusalcause"
	"muster.dev/muster/internal/platform/logs"
)

const (
	// refusalBytes is how much of each log is read for refusals, from its end.
	refusalBytes = 4 << 20
	// keptRefusals is how many different refusals are kept, the newest.
	keptRefusals = 500
	// authenticatorLog and serviceLog are the names of the logs that have refusals.
	authenticatorLog, serviceLog = "authenticator", "serve"
)

// Refusal is a token that the authenticator of a cluster refused, or a request that the account refused its sender, as a
// log of this host has it. It stands for all that are equal but for what was seen.
type Refusal struct {
	Time time.Time // of the newest
	// By is "authenticator", or the service of AWS's API, such as sts.
	By      string
	Cluster string // of the authenticator; empty for the account
	// Principal is the ARN of the sender; empty where that was not proven.
	Principal string
	// AccessKeyID is the key that the newest names. Without a Principal nobody has proven to have it.
	AccessKeyID string
	Machine     string // whose session it is
	Action      string // such as sts:AssumeRole
	Resource    string
	Rule        string // the rule of the authenticator, or the code of the account
	Cause       cause.ID
	Saw         string
	Fix         string
	From        string // address of the sender
	Count       int
}

// Refusals returns the last tokens and requests that were refused, the newest first: by the authenticators of clusters and
// by the account. A log that is not there yet has none.
func (h HostLogs) Refusals(ctx context.Context, clusters []string) ([]Refusal, error) {
	found := map[Refusal]*Refusal{}
	add := func(r Refusal, at time.Time) {
		key := Refusal{By: r.By, Cluster: r.Cluster, Principal: r.Principal, Machine: r.Machine, Action: r.Action, Resource: r.Resource, Rule: r.Rule, From: r.From}
		if r.Principal == "" {
			key.AccessKeyID = r.AccessKeyID
		}
		r.Time, r.Count = at, 1
		if before := found[key]; before != nil {
			r.Count += before.Count
		}
		found[key] = &r
	}
	read := func(sources []logs.Source, name string, take func(line []byte) (Refusal, bool)) error {
		for _, source := range sources {
			if source.Name != name {
				continue
			}
			err := h.lines(ctx, source, logs.Config{TailBytes: refusalBytes}, func(line []byte, at time.Time) {
				if r, ok := take(line); ok {
					add(r, at)
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, cluster := range clusters {
		err := read(h.ofCluster(cluster), authenticatorLog, func(line []byte) (Refusal, bool) { return refusedToken(line, cluster) })
		if err != nil {
			return nil, err
		}
	}
	if err := read(logs.Components(h.Dir), serviceLog, refusedRequest); err != nil {
		return nil, err
	}
	all := make([]Refusal, 0, len(found))
	for _, r := range found {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Refusal) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.By, b.By), strings.Compare(a.Principal, b.Principal), strings.Compare(a.Action, b.Action),
			strings.Compare(a.Resource, b.Resource), strings.Compare(a.Rule, b.Rule), strings.Compare(a.AccessKeyID, b.AccessKeyID))
	})
	return all[:min(len(all), keptRefusals)], nil
}

// Signs of lines that are parsed, since most lines are others.
var (
	deniedSign  = []byte(`msg="access denied"`)
	requestSign = []byte(` request"`)
	goneWell    = []byte(` outcome=ok `)
)

// refusedToken is the refusal in a line of an authenticator's log (package authenticator).
func refusedToken(line []byte, cluster string) (Refusal, bool) {
	if !bytes.Contains(line, deniedSign) {
		return Refusal{}, false
	}
	f := logfmt(string(line))
	if f["msg"] != "access denied" {
		return Refusal{}, false
	}
	return Refusal{
		By: authenticatorLog, Cluster: cluster, Principal: bounded(f["arn"]), AccessKeyID: bounded(cmp.Or(f["access_key_id"], f["claimed_access_key_id"])),
		Machine: bounded(f["instance"]), Rule: bounded(f["rule"]), Cause: cause.ID(refusalcause.Of(f["rule"])), Saw: bounded(f["saw"]), Fix: bounded(f["fix"]),
	}, true
}

// refusedRequest is the refusal in a line of the service's log about a request of AWS's API (package awsfront): one whose
// sender was not believed, or may not do that. Other errors are about what was asked.
func refusedRequest(line []byte) (Refusal, bool) {
	if !bytes.Contains(line, requestSign) || bytes.Contains(line, goneWell) {
		return Refusal{}, false
	}
	f := logfmt(string(line))
	if f["msg"] != "identity request" && f["msg"] != "aws request" || !ofTheSender(f["outcome"]) {
		return Refusal{}, false
	}
	from := f["source"]
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	return Refusal{
		By: bounded(f["api"]), Principal: bounded(f["principal"]), AccessKeyID: bounded(f["access_key_id"]), Action: bounded(f["api"] + ":" + f["action"]),
		Resource: bounded(f["resource"]), Rule: bounded(f["outcome"]), Saw: bounded(f["message"]), From: bounded(cmp.Or(from, f["via"])),
	}, true
}

// ofTheSender reports whether an error code of AWS's APIs is about the sender of a request, in any of their protocols.
func ofTheSender(code string) bool {
	switch strings.TrimSuffix(code, "Exception") {
	case "AccessDenied", "UnauthorizedOperation", "InvalidClientTokenId", "UnrecognizedClient", "AuthFailure", "SignatureDoesNotMatch", "InvalidSignature",
		"IncompleteSignature", "MissingAuthenticationToken", "ExpiredToken", "RequestExpired", "InvalidIdentityToken", "InvalidToken", "IDPRejectedClaim":
		return true
	}
	return false
}
