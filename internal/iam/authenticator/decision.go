// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"errors"
	"net/http"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/tokenrefusal"
	"muster.dev/muster/internal/iam/tokenverify"
)

// Result is what came of a request, in the words of aws-iam-authenticator's metrics.
type Result string

// The results. uknown_user is spelt so there, and dashboards ask for it.
const (
	Success     Result = "success"
	Malformed   Result = "malformed_request"
	InvalidForm Result = "invalid_token"
	STSError    Result = "sts_error"
	STSThrottle Result = "sts_throttling"
	UnknownUser Result = "uknown_user"
)

// Decision is what became of a token, and why.
type Decision struct {
	Result Result
	Status int // of HTTP
	User   identity.User
	// Identity is the maker of the token, if known.
	Identity *tokenverify.Identity
	// Claim is the access key that a token names whose maker is not known. Anybody can name any.
	Claim  string
	Source identity.Source
	Entry  string
	// Trusted means that it is a node because the configuration trusts the name of its session.
	Trusted bool
	// Rule, Saw and Fix say why it was refused.
	Rule, Saw, Fix string
	Cached         bool // the maker of the token was known already
}

// refused is the decision about a token of whose maker nothing is known, or nothing good.
func refused(err error) Decision {
	if form, ok := errors.AsType[*tokenrefusal.Refusal](err); ok {
		return Decision{Result: InvalidForm, Status: http.StatusForbidden, Rule: form.Rule, Saw: form.Saw, Fix: form.Fix}
	}
	if no, ok := errors.AsType[*tokenverify.Refused](err); ok {
		d := Decision{Result: STSError, Status: http.StatusForbidden, Rule: no.Rule, Saw: no.Saw, Fix: no.Fix}
		if no.Code != "" {
			d.Rule += "/" + no.Code
		}
		return d
	}
	if errors.Is(err, tokenverify.ErrThrottled) {
		return Decision{Result: STSThrottle, Status: http.StatusTooManyRequests, Rule: "throttled", Saw: err.Error(), Fix: "it is tried again"}
	}
	return unavailable(err.Error())
}

// unavailable is the decision while no answer can be had.
func unavailable(why string) Decision {
	return Decision{Result: STSError, Status: http.StatusServiceUnavailable, Rule: "unavailable", Saw: why, Fix: "it is tried again with the next request"}
}

// mapped is the decision about a known principal.
func mapped(id *tokenverify.Identity, o identity.Outcome) Decision {
	d := Decision{Result: Success, Status: http.StatusOK, User: o.User, Identity: id, Source: o.Source, Entry: o.Entry, Trusted: o.Trusted}
	if o.Mapped && o.User.Name != "" {
		return d
	}
	d.Result, d.Status, d.User, d.Trusted = UnknownUser, http.StatusForbidden, identity.User{}, false
	d.Rule, d.Saw, d.Fix = string(o.Rule), o.Reason, o.Fix
	if o.Source == "" || id.Unproven == nil { // no entry is about them, or it is not about the instance
		return d
	}
	if no, ok := errors.AsType[*tokenverify.Refused](id.Unproven); ok {
		d.Saw += ": " + no.Saw
		if no.Fix != "" {
			d.Fix = no.Fix
		}
		return d
	}
	late := unavailable(id.Unproven.Error())
	late.Identity, late.Source, late.Entry = id, o.Source, o.Entry
	return late
}
